"""Joins that probe the same SteM by the same key do it once, whatever else they ask for."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.engine.shared.adapter import WAYS, shared_engine
from tests.engine.shared.kernels.join.test_prefixes import PAIR, STREAMS, agree, routes_of

from thalweg.cql.compile import compile_script
from thalweg.engine.arrivals import Arrival
from thalweg.engine.reference import Options
from thalweg.engine.shared.kernels.join import shared_probe as shared_probes

DISTINCT = PAIR.replace("SELECT", "SELECT DISTINCT")  # the same join under another query


def consumers(*queries: str) -> list[int]:
    """How many different joins probe_once, place by place."""
    found = {r.shared for r in routes_of(*queries).values() if r.shared is not None}
    return sorted(len(m.consumers) for m in found)


@pytest.mark.parametrize(
    "other",
    [
        PAIR.replace("Range 5", "Range 4"),
        PAIR.replace("[Range 3]", "[Unbounded]"),
        PAIR + " AND B.v > 1",
        PAIR + " AND A.v < B.v",
        PAIR.replace("FROM A [Range 5], B", "FROM A [Range 5], C [Range 9], B") + " AND C.v = A.v",
    ],
    ids=["a window", "an unbounded window", "a filter", "a condition", "a third stream"],
)
def test_joins_that_differ_in_anything_but_their_keys_meet(other: str) -> None:
    alike = "C.v" in other  # a third stream comes after the first step, which is the same
    assert consumers(PAIR, other) == ([] if alike else [2, 2])
    assert consumers(PAIR, other, PAIR + " AND A.v = 7") == ([2, 2] if alike else [3, 3])


@pytest.mark.parametrize(
    "other",
    [
        PAIR.replace("A.k = B.k", "A.v = B.k"),
        PAIR.replace("B [", "C [").replace("B.", "C."),
        PAIR.replace("Range 5", "Range 5 Slide 5"),
        DISTINCT,
    ],
    ids=["another key", "another stream", "a window that slides", "the same join"],
)
def test_others_do_not(other: str) -> None:
    assert consumers(PAIR, other) == []


def different(count: int, filtered: str = "") -> list[str]:
    """Joins that nothing but their first step has in common: a condition is not a constant."""
    return [f"{DISTINCT} AND A.v {'+ A.v ' * i} > B.v {filtered}" for i in range(count)]


def run(*queries: str) -> None:
    text = "".join(f"CREATE QUERY q{i} AS {q};" for i, q in enumerate(queries))
    script = compile_script(STREAMS + text)
    tuples = {s: [Arrival(0, 1, 1, (1, 2), "+")] for s in "ABC"}
    shared_engine(script.catalog, script.queries, tuples, Options())


def watched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What came of it, each time that new tuples probed for all."""
    found, plain = [], shared_probes._find

    def find(task, shared, new, *more):  # type: ignore[no-untyped-def]
        pairs = plain(task, shared, new, *more)
        if new.height:
            found.append("too many" if pairs is None else "found")
        return pairs

    monkeypatch.setattr(shared_probes, "_find", find)
    return found


def test_a_stem_is_probed_once_for_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    found = watched(monkeypatch)
    run(*different(3))
    of_three = len(found)
    found.clear()
    run(*different(30))
    assert of_three == len(found) > 0


def test_few_joins_that_want_little_of_much_had_better_probe_by_themselves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shared_probes, "CALLS", 0.0)
    assert consumers(*different(2, "AND A.v < 0")) == [2, 2]
    found = watched(monkeypatch)
    run(*different(2, "AND A.v < 0 AND B.v < 0"))
    assert "found" not in found


@pytest.mark.parametrize(
    ("new", "passing", "is_unlimited"),
    [(1_000, [1_000] * 40, True), (1_000, [1] * 40, False), (0, [0, 0], False)],
    ids=["all want all", "all want little", "nothing new"],
)
def test_how_many_pairs_may_be_found_together(
    new: int, passing: list[int], is_unlimited: bool
) -> None:
    most = shared_probes._most_pairs(new, passing)
    assert (most == inf) is is_unlimited
    assert most > 100_000  # two small joins at least are always better off together


def test_a_long_window_is_not_probed_for_those_who_want_little_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shared_probes, "CALLS", 100.0)
    found = watched(monkeypatch)
    text = "".join(
        f"CREATE QUERY q{i} AS {q};" for i, q in enumerate(different(2, "AND A.v < 1 AND B.v < 1"))
    )
    text = text.replace("Range 3", "Unbounded")
    inputs = {s: [Arrival(0, at, at, (1, at), "+") for at in range(40)] for s in "ABC"}
    agree(STREAMS + text, inputs, tuples_per_tick=2, way="one task")
    assert {"found", "too many"} == set(found)  # as the window fills


@st.composite
def workloads(draw: st.DrawFn) -> tuple[str, dict[str, list[Arrival]]]:
    """Joins that begin nearly alike; no two of the queries can be of one group."""
    windows = st.sampled_from(["[Now]", "[Range 2]", "[Range 5]", "[Range 5]", "[Unbounded]"])
    parts = [
        "A.v > 0",
        "A.v IS NULL",
        "B.v <= 1",
        "B.k <> 2",
        "A.v < B.v",
        "A.v + B.v = 2",
        "1 > 2",
    ]
    text = STREAMS
    for i in range(draw(st.integers(2, 5))):
        where = ["A.k = B.k"] if draw(st.booleans()) else ["A.k = B.k", "A.v = B.v"]
        where += draw(st.lists(st.sampled_from(parts), max_size=2))
        sources = [f"A {draw(windows)}", f"B {draw(windows)}"]
        if draw(st.booleans()):
            sources.append(f"C {draw(windows)}")
            where.append("C.k = A.k")
        sources = draw(st.permutations(sources))
        top = draw(st.sampled_from(["SELECT DISTINCT", "SELECT", "RSTREAM SELECT"]))
        text += (
            f"CREATE QUERY q{i} AS {top} A.v, B.v, A.k + {i} AS k "
            f"FROM {', '.join(sources)} WHERE {' AND '.join(where)};"
        )
    inputs = {}
    for stream in "ABC":
        at, arrivals = 0, []
        for position in range(draw(st.integers(0, 6))):
            at += draw(st.integers(0, 3))
            row = (draw(st.sampled_from([1, 2, None])), draw(st.sampled_from([0, 1, 2, None])))
            arrivals.append(Arrival(0, at, position, row, "+"))
        inputs[stream] = arrivals
    return text, inputs


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(workloads(), st.integers(1, 4), st.sampled_from(WAYS), st.sampled_from([1, 1 << 25]))
def test_results_are_those_of_the_reference(workload, tuples_per_tick, way, at_once):  # type: ignore[no-untyped-def]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shared_probes, "CHECKED_AT_ONCE", at_once)
        agree(*workload, tuples_per_tick, way)


@pytest.mark.parametrize("constant", ["1 > 2", "1 < 2", "NULL IS NOT NULL"])
@pytest.mark.parametrize("together", [False, True])
def test_a_condition_that_is_a_constant_is_one_for_all_rows(
    constant: str, together: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not together:
        monkeypatch.setattr(shared_probes, "CALLS", float("-inf"))
    text = "".join(
        f"CREATE QUERY q{i} AS {q};" for i, q in enumerate(different(2, f"AND {constant}"))
    )
    inputs = {s: [Arrival(0, at // 2, at, (1, at), "+") for at in range(6)] for s in "ABC"}
    agree(STREAMS + text, inputs, tuples_per_tick=2, way="one task")
