"""Sharing never shows: queries that come and go at any tick say what the reference says."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conformance.runner import compare
from tests.engine.shared.adapter import Collect, changes, push
from tests.engine.shared.sharing_workloads import (
    FORMS,
    STREAMS,
    TOPS,
    SharedWorkload,
    shared_workloads,
)

from thalweg.engine import reference
from thalweg.engine.arrivals import Arrival
from thalweg.engine.shared import families
from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.executors import InProcess
from thalweg.engine.shared.groups import Generation, core_of
from thalweg.engine.shared.kernels import group
from thalweg.engine.shared.worth import Sharing

SEEN: Counter[str] = Counter()


class Listening(Collect):
    """Wants some of the queries only."""

    def __init__(self, pushed: set[str]) -> None:
        super().__init__()
        self.pushed = pushed

    def wants(self, query: str) -> bool:
        return query in self.pushed


def run(workload: SharedWorkload, tuples_per_tick: int, tasks: int, *, sharing: Sharing) -> None:
    script = workload.script()
    pushed = {
        q.name for q, is_pushed in zip(script.queries, workload.pushed, strict=True) if is_pushed
    }
    outlet = Listening(pushed)
    with tempfile.TemporaryDirectory() as folder:
        engine = SharedEngine(
            Path(folder),
            InProcess(tasks),
            outlet=outlet,
            durable=False,
            rows_for_more_tasks=0,
            sharing=sharing,
        )
        streams = {s.name: s for s in script.catalog.streams()}
        for stream in streams.values():
            engine.add_stream(stream)
        waiting = {name: iter(arrivals) for name, arrivals in workload.inputs.items()}
        tick = 0
        standing = list(zip(script.queries, workload.life, strict=True))
        while waiting or tick <= max(born for born, _ in workload.life):
            for query, (_, dies) in standing:
                if dies == tick and query.name in engine.queries:
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
            if query.name in engine.queries:
                check(engine, outlet, query, workload)
        engine.close()


def frontier(engine: SharedEngine, query: str) -> int:
    flow = engine.run_of(query)
    assert flow is not None
    rows = engine.store.all("SELECT frontier FROM frontiers WHERE flow = ?", flow.flow)
    return rows[0][0] if rows else -(1 << 62)


def check(engine, outlet, query, workload, upto=None):  # type: ignore[no-untyped-def]
    begun = engine.queries[query.name]
    expected = reference.evaluate(
        query.plan, workload.inputs, start=begun.started, horizons=dict(begun.horizons)
    )
    if upto is not None:
        expected = [c for c in expected if c.ts < upto]
    read = [c for e in engine.emissions_after(query.name) for c in changes(e.rows)]
    report = compare(query, expected, read)
    assert not report, f"read back: {begun}\n{report}"
    if outlet.wants(query.name):
        report = compare(query, expected, outlet.results.get(query.name, []))
        assert not report, f"pushed: {begun}\n{report}"


def count(engine: SharedEngine) -> None:
    """What the drawn sets really did."""
    SEEN["generations"] += len(engine.generations)
    SEEN["members"] += len(engine.homes)
    SEEN["lifted"] += sum(g.is_lifted for g in engine.generations.values())
    for pushed in engine.pushed.values():
        for family in pushed.families:
            for column in (*family.constants.looked_up, *family.constants.checked):
                SEEN[column.manner.value] += 1
            SEEN["residual"] += len(family.residuals)
            SEEN["nothing to look up"] += family.constants.index is None
            SEEN["of several windows"] += len({tuple(w) for w in family.lengths.T}) > 1


SETTINGS = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@SETTINGS
@given(shared_workloads(), st.integers(1, 3), st.integers(1, 2), st.sampled_from(Sharing))
def test_members_of_groups_say_what_they_would_say_alone(
    workload: SharedWorkload, tuples_per_tick: int, tasks: int, sharing: Sharing
) -> None:
    run(workload, tuples_per_tick, tasks, sharing=sharing)


def alike(form: str, top: str, *, late: bool = False) -> SharedWorkload:
    """Three queries that differ in a constant and a window, over rows that repeat themselves."""
    wheres = (form.format("s.v", low, low + 1) for low in range(3))
    text = STREAMS + "".join(
        f"CREATE QUERY q{i} AS "
        + top.format("", "s.k, s.v", f"S [Range {2 * i + 1}] AS s" + where, "s.v")
        + ";"
        for i, where in enumerate(f" WHERE {w}" if w else "" for w in wheres)
    )
    tuples = [Arrival(0, at, at, (1 + at % 2, at % 4, "a"), "+") for at in range(12)]
    life = ((0, 99), (0, 99), (2 if late else 0, 99))
    return SharedWorkload(text, {"S": tuples, "R": []}, life, (True,) * 3)


def test_every_rule_and_every_kind_of_index_is_hit() -> None:
    SEEN.clear()
    for form in ("", *FORMS):
        for top in dict.fromkeys(TOPS):
            run(alike(form, top), 3, 1, sharing=Sharing.WHEREVER_POSSIBLE)
    wanted = {
        "generations",
        "lifted",
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


# --- a broken engine is caught


def _ends_by_the_loosest(stamps, lengths):  # type: ignore[no-untyped-def]
    return families_ends_of(stamps, [np.max(length) for length in lengths])


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
    "members move where they are not covered": (Generation, "covers", _takes_anybody),
    "residual conditions are not checked": (
        families,
        "_passing",
        lambda family, frame, row, member: np.ones(len(row), dtype=bool),
    ),
}


def run_all() -> None:
    for late in (False, True):
        for form in ("", *FORMS):
            run(alike(form, TOPS[0], late=late), 1, 1, sharing=Sharing.WHEREVER_POSSIBLE)


@pytest.mark.parametrize("mutant", MUTANTS)
def test_the_sets_catch(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*MUTANTS[mutant])
    with pytest.raises((AssertionError, KeyError)):
        run_all()
