"""Sharing never shows: queries that come and go at any tick say what the reference says."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from decimal import Decimal
from itertools import cycle, islice, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conformance.runner import compare
from tests.drawn import examples, some
from tests.engine.shared.adapter import WAYS, Collect, changes, divided, push
from tests.engine.shared.sharing_workloads import (
    FORMS,
    KINDS,
    STREAMS,
    TOPS,
    SharedWorkload,
    shared_workloads,
)

from thalweg.engine import reference
from thalweg.engine.arrivals import Arrival
from thalweg.engine.shared.compile import panes
from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.groups import aggregate_grouping, families, roster
from thalweg.engine.shared.groups.cost_model import Sharing
from thalweg.engine.shared.groups.regroup_actions import RegroupActions
from thalweg.engine.shared.groups.running_group import RunningGroup, core_of
from thalweg.engine.shared.kernels import group

SEEN: Counter[str] = Counter()


class Listening(Collect):
    """Wants some of the queries only."""

    def __init__(self, pushed: set[str]) -> None:
        super().__init__()
        self.pushed = pushed

    def wants(self, query: str) -> bool:
        return query in self.pushed


def run(
    workload: SharedWorkload,
    tuples_per_tick: int,
    way: str,
    *,
    sharing: Sharing,
    restarts: Collection[int] = (),
) -> None:
    """`restarts` are the ticks before which the engine is closed and opened again."""
    script = workload.script()
    pushed = {
        q.name for q, is_pushed in zip(script.queries, workload.pushed, strict=True) if is_pushed
    }
    outlet = Listening(pushed)
    streams = {s.name: s for s in script.catalog.streams()}

    def opened(folder: str) -> SharedEngine:
        engine = SharedEngine(
            Path(folder), outlet=outlet, durable=False, sharing=sharing, **divided(way)
        )
        for stream in streams.values():
            engine.add_stream(stream)
        return engine

    with tempfile.TemporaryDirectory() as folder:
        engine = opened(folder)
        waiting = {name: iter(arrivals) for name, arrivals in workload.inputs.items()}
        tick = 0
        standing = list(zip(script.queries, workload.life, strict=True))
        while waiting or tick <= max(born for born, _ in workload.life):
            if tick in restarts:
                known = [q for q, _ in standing if q.name in engine.roster.queries]
                engine.close()
                engine = opened(folder)
                engine.add_queries(known)
            for query, (_, dies) in standing:
                if dies == tick and query.name in engine.roster.queries:
                    check(engine, outlet, query, workload, upto=frontier(engine, query.name))
                    engine.drop_query(query.name)
            engine.add_queries(q for q, (born, _) in standing if born == tick)
            for name in list(waiting):
                chunk = list(islice(waiting[name], tuples_per_tick))
                push(engine, streams[name], chunk)
                if not chunk:
                    engine.finish(name)
                    del waiting[name]
            engine.run_to_end()
            count(engine)
            tick += 1
        for query, _ in standing:
            if query.name in engine.roster.queries:
                check(engine, outlet, query, workload)
        engine.close()


def frontier(engine: SharedEngine, query: str) -> int:
    flow = engine.roster.run_of(query)
    assert flow is not None
    rows = engine.store.all("SELECT frontier FROM frontiers WHERE flow = ?", flow.flow)
    return rows[0][0] if rows else -(1 << 62)


def check(engine, outlet, query, workload, upto=None):  # type: ignore[no-untyped-def]
    begun = engine.roster.queries[query.name]
    expected = reference.evaluate(
        query.plan, workload.inputs, start=begun.started, horizons=dict(begun.horizons)
    )
    if upto is not None:
        expected = [c for c in expected if c.ts < upto]
    read = [c for e in engine.emissions(query.name) for c in changes(e.rows)]
    report = compare(query, expected, read)
    assert not report, f"read back: {begun}\n{report}"
    if outlet.wants(query.name):
        report = compare(query, expected, outlet.results.get(query.name, []))
        assert not report, f"pushed: {begun}\n{report}"


def count(engine: SharedEngine) -> None:
    """What the drawn sets really did."""
    SEEN["groups"] += len(engine.roster.groups)
    SEEN["members"] += len(engine.roster.group_of)
    member_aggregates = [g for g in engine.roster.groups.values() if g.runs_aggregates]
    SEEN["member_aggregates"] += len(member_aggregates)
    SEEN["of partial aggregates"] += sum(
        any(isinstance(o, ph.Partials) for o in ph.walk(g.run.output)) for g in member_aggregates
    )
    homes = [{m.epoch for m in engine.roster.members_of(g.name)} for g in member_aggregates]
    most = max((len(engine.roster.members_of(g.name)) for g in member_aggregates), default=0)
    SEEN["most member_aggregates together"] = max(most, SEEN["most member_aggregates together"])
    SEEN["member_aggregates after they had run"] += sum(len(epochs) > 1 for epochs in homes)
    for pushed in engine._delivery._wanted().values():
        for family in pushed.families:
            for column in (*family.constants.looked_up, *family.constants.checked):
                SEEN[column.manner.value] += 1
            SEEN["residual"] += len(family.residuals)
            SEEN["nothing to look up"] += family.constants.index is None
            SEEN["of several windows"] += len({tuple(w) for w in family.lengths.T}) > 1


SETTINGS = settings(
    max_examples=examples(6),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@SETTINGS
@given(
    shared_workloads(),
    st.integers(1, 3),
    st.sampled_from(WAYS),
    st.sampled_from(Sharing),
    st.sets(st.integers(1, 8), max_size=2),
)
def test_members_of_groups_say_what_they_would_say_alone(
    workload: SharedWorkload, tuples_per_tick: int, way: str, sharing: Sharing, restarts: set[int]
) -> None:
    run(workload, tuples_per_tick, way, sharing=sharing, restarts=restarts)


RANGES = tuple(f"[Range {length}]" for length in (1, 3, 5))
SLIDING = tuple(f"[Range {length} Slide 2]" for length in (1, 3, 5))


def alike(
    form: str,
    top: str,
    born: tuple[int, ...] = (0, 0, 0),
    since: str = "",
    windows: tuple[str, ...] = RANGES,
    kind: str = "",
) -> SharedWorkload:
    """Queries that differ in a constant and a window, over rows that repeat themselves."""
    wheres = (form.format("s.v", low % 3, low % 3 + 1) for low in range(len(born)))
    text = STREAMS + "".join(
        f"CREATE QUERY q{i} {since} AS "
        + top.format(kind, "s.k, s.v", f"S {windows[i % len(windows)]} AS s" + where, "s.v")
        + ";"
        for i, where in enumerate(f" WHERE {w}" if w else "" for w in wheres)
    )
    tuples = [Arrival(0, at, at, (1 + at % 2, at % 4, "a"), "+") for at in range(6 * len(born))]
    life = tuple((tick, 99) for tick in born)
    return SharedWorkload(text, {"S": tuples, "R": []}, life, (True,) * len(born))


def test_every_rule_and_every_kind_of_index_is_hit() -> None:
    SEEN.clear()
    for form, top, born in some(
        product(("", *FORMS), dict.fromkeys(TOPS), ((0, 0, 0), (0, 1, 2, 3))), 7
    ):
        run(alike(form, top, born), 3, "one task", sharing=Sharing.WHEREVER_POSSIBLE)
    wanted = {
        "groups",
        "member_aggregates",
        "member_aggregates after they had run",
        "members",
        "equality",
        "at least",
        "at most",
        "between",
        "residual",
        "nothing to look up",
        "of several windows",
    }
    assert not {w for w in wanted if not SEEN[w]}, SEEN


LATER = (0, 1, 2, 3, 5, 6, 7, 8)


def run_later() -> None:
    for top in some((t for t in dict.fromkeys(TOPS) if "COUNT" in t or "DISTINCT" in t), 13):
        for way, since in (("one task", ""), ("runs", "FROM NOW"), ("rows", "")):
            run(alike(FORMS[1], top, LATER, since), 1, way, sharing=Sharing.WHEREVER_POSSIBLE)
        # What an unbounded window once let in is not stored: a later run can't know of it.
        workload = alike(FORMS[1], top, (0, 5), windows=("[Unbounded]",))
        run(workload, 1, "one task", sharing=Sharing.WHEREVER_POSSIBLE)


def test_aggregates_that_come_one_after_the_other_are_brought_together() -> None:
    SEEN.clear()
    run_later()
    assert SEEN["most member_aggregates together"] == len(LATER)


def test_windows_of_one_slide_are_answered_together() -> None:
    SEEN.clear()
    drawn = some(product(FORMS[:2], dict.fromkeys(TOPS), ((0, 0, 0), (0, 1, 2, 5))), 5)
    for (form, top, born), kind, way in zip(drawn, cycle(KINDS), cycle(WAYS), strict=False):
        workload = alike(form, top, born, windows=SLIDING, kind=kind)
        run(workload, 2, way, sharing=Sharing.WHEREVER_POSSIBLE)
    wanted = (
        "groups",
        "member_aggregates",
        "member_aggregates after they had run",
        "of several windows",
    )
    assert all(SEEN[w] for w in wanted), SEEN


def test_partial_aggregates_serve_windows_that_slide_over_the_same_tuples() -> None:
    SEEN.clear()
    run(alike("", TOPS[4], windows=SLIDING), 2, "one task", sharing=Sharing.WHEREVER_POSSIBLE)
    assert not SEEN["member_aggregates"]
    run(alike(FORMS[0], TOPS[4], windows=SLIDING), 2, "rows", sharing=Sharing.WHEREVER_POSSIBLE)
    assert SEEN["member_aggregates"]


def test_partial_aggregates_are_made_for_many_members_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(panes, "_LADDER_US", (2_000,))  # two instants
    SEEN.clear()
    tops = [t for t in dict.fromkeys(TOPS) if "COUNT" in t]
    drawn = some(product(FORMS[:2], tops, ((0, 0, 0, 0), (0, 1, 2, 5))), 13)
    for (form, top, born), kind, way in zip(drawn, cycle(KINDS), cycle(WAYS), strict=False):
        workload = alike(form, top, born, windows=("[Range 4 Slide 2]",), kind=kind)
        run(workload, 2, way, sharing=Sharing.WHEREVER_POSSIBLE)
    assert SEEN["of partial aggregates"]
    assert SEEN["member_aggregates after they had run"]


@pytest.mark.parametrize("since", ["", "FROM NOW"])
def test_a_query_that_moves_remembers_that_it_has_had_a_row(since: str) -> None:
    """COUNT says 0 when all has gone; that is taken back, wherever it was said."""
    SEEN.clear()
    for top in (t for t in TOPS if "COUNT" in t and "GROUP" not in t):
        for kind, way in zip(KINDS, WAYS, strict=True):
            workload = alike(FORMS[4], top, (0, 2, 5, 6), since, RANGES[:1], kind)
            run(workload, 1, way, sharing=Sharing.WHEREVER_POSSIBLE, restarts={8, 9})
    assert SEEN["member_aggregates after they had run"]


def test_what_stands_on_such_a_row_with_state_of_its_own_does_not_move() -> None:
    for top in (
        "SELECT {0}DISTINCT COUNT(*) AS n FROM {2}",
        "SELECT {0}MAX(n) AS n FROM (SELECT COUNT(*) AS n FROM {2})",
    ):
        workload = alike(FORMS[4], top, (0, 2, 5, 6), "", RANGES[:1])
        run(workload, 1, "one task", sharing=Sharing.WHEREVER_POSSIBLE)


# --- a broken engine is caught


def _ends_by_the_loosest(stamps, lengths, slides):  # type: ignore[no-untyped-def]
    return families_ends_of(stamps, [np.max(length) for length in lengths], slides)


def _nothing_repeated(family, started, ended):  # type: ignore[no-untyped-def]
    rows = _rows_of(family, started, ended)
    return replace(rows, repeated=np.zeros(len(rows.repeated), dtype=bool))


def _takes_anybody(self, member, frontier):  # type: ignore[no-untyped-def]
    return self.representative.signature == core_of(member).signature


def _forgets(*_, **__) -> None:  # type: ignore[no-untyped-def]
    return None


families_ends_of = families.ends_of
_rows_of = families._Rows.of
MUTANTS = {
    "all members have the loosest windows": (families, "ends_of", _ends_by_the_loosest),
    "equal rows are not netted": (families._Rows, "of", _nothing_repeated),
    "open rows are forgotten": (group, "_remember", _forgets),
    "members move where they are not covered": (RunningGroup, "covers", _takes_anybody),
    "residual conditions are not checked": (
        families,
        "_passing",
        lambda family, frame, row, member: np.ones(len(row), dtype=bool),
    ),
}


def run_all() -> None:
    for last in (0, 2):
        for form in ("", *FORMS):
            run(
                alike(form, TOPS[0], (0, 0, last)), 1, "one task", sharing=Sharing.WHEREVER_POSSIBLE
            )


@pytest.mark.parametrize("mutant", MUTANTS)
def test_the_sets_catch(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*MUTANTS[mutant])
    with pytest.raises((AssertionError, KeyError)):
        run_all()


def _all_is_outlived(*_) -> bool:  # type: ignore[no-untyped-def]
    return True


def _moved_at_once(self, members, beside, **options):  # type: ignore[no-untyped-def]
    home = _start(self, members, beside, **options)
    if beside is None:
        self.move(members, home)
    return home


_start = RegroupActions.start
MUTANTS_OF_AGGREGATES = {
    "what only some have seen is not waited for": (
        aggregate_grouping,
        "history_expired",
        _all_is_outlived,
    ),
    "members move before their new home has caught up": (
        RegroupActions,
        "start",
        _moved_at_once,
    ),
    "a new home looks at no window until it has members": (
        roster,
        "windows_in",
        lambda family: [],
    ),
}


@pytest.mark.parametrize("mutant", MUTANTS_OF_AGGREGATES)
def test_aggregates_that_come_later_catch(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*MUTANTS_OF_AGGREGATES[mutant])
    with pytest.raises((AssertionError, KeyError)):
        run_later()


@pytest.mark.parametrize("born", range(4))
def test_from_now_on_is_from_the_next_tuple_on_where_this_instant_went_unread(born: int) -> None:
    """Tuples of the instant may have come before: of a stream that nobody read, or without a
    column that nobody wanted."""
    text = STREAMS + "CREATE QUERY q0 FROM NOW AS SELECT s.k FROM S [Range 3] AS s;"
    text += "CREATE QUERY q1 FROM NOW AS SELECT s.v, r.price FROM S [Range 3] AS s, R [Now] AS r;"
    tuples = [Arrival(0, at // 2, at, (at, at, "a"), "+") for at in range(24)]
    prices = [Arrival(0, at, at, (at, Decimal(at)), "+") for at in range(12)]
    workload = SharedWorkload(
        text, {"S": tuples, "R": prices}, ((born, 99), (born + 2, 99)), (True, True)
    )
    run(workload, 1, "one task", sharing=Sharing.WHERE_IT_PAYS)


@pytest.mark.parametrize("born", range(1, 4))
@pytest.mark.parametrize("window", ["[Range 3]", "[Unbounded]", "[Unbounded Slide 3]"])
def test_who_moves_has_said_all_about_what_its_new_home_never_saw(born: int, window: str) -> None:
    # The second query needs a column that was not kept until it came.
    text = STREAMS + f"CREATE QUERY q0 AS SELECT s.k FROM S {window} AS s;"
    text += f"CREATE QUERY q1 AS SELECT s.v FROM S {window} AS s;"
    tuples = [Arrival(0, at, at, (at, at, "a"), "+") for at in range(12)]
    workload = SharedWorkload(text, {"S": tuples, "R": []}, ((0, 99), (born, 99)), (True, True))
    SEEN.clear()
    run(workload, 1, "one task", sharing=Sharing.WHEREVER_POSSIBLE)
    assert SEEN["members"]


@pytest.mark.parametrize("way", WAYS)
def test_groups_of_different_aggregates_over_the_same_rows_have_one_state_of_them(way: str) -> None:
    tops = (TOPS[6], TOPS[6].replace("COUNT(*)", "SUM(s.v)"), TOPS[0], TOPS[3])
    texts = [
        top.format("", "s.k, s.v", f"S {window} AS s WHERE (s.v = {v} OR s.v > {v + 1})", "s.v")
        for top, (v, window) in product(tops, enumerate(("[Range 3]", "[Range 2]")))
    ]
    text = STREAMS + "".join(f"CREATE QUERY q{i} AS {t};" for i, t in enumerate(texts))
    tuples = [Arrival(0, at // 2, at, (1, at % 4, "a"), "+") for at in range(24)]
    lives = ((0, 99),) * len(texts)
    workload = SharedWorkload(text, {"S": tuples, "R": []}, lives, (True,) * len(texts))
    SEEN.clear()
    run(workload, 2, way, sharing=Sharing.WHEREVER_POSSIBLE)
    assert SEEN["member_aggregates"] > SEEN["groups"] / 2
