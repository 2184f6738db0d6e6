"""A join that contains another's uses what that one has bound on its way."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conformance.runner import compare
from tests.engine.shared.adapter import WAYS, divided, shared_engine

from thalweg.cql.compile import compile_script
from thalweg.engine import reference
from thalweg.engine.arrivals import Arrival
from thalweg.engine.reference import Options
from thalweg.engine.shared.compile.planning import Run, make_plan
from thalweg.engine.shared.kernels.join import join
from thalweg.engine.shared.kernels.join.prefixes import Routes, routes
from thalweg.plan.nodes import base_streams

STREAMS = """
CREATE STREAM A (k INTEGER, v INTEGER) TIMESTAMP BY at;
CREATE STREAM B (k INTEGER, v INTEGER) TIMESTAMP BY at;
CREATE STREAM C (k INTEGER, v INTEGER) TIMESTAMP BY at;
"""
PAIR = "SELECT A.v, B.v FROM A [Range 5], B [Range 3] WHERE A.k = B.k"
TRIPLE = (
    "SELECT A.k, B.k, C.v FROM A [Range 5], B [Range 3], C [Range 9] WHERE A.k = B.k AND B.k = C.k"
)


def routes_of(*queries: str, is_level: bool = True) -> Routes:
    script = compile_script(
        STREAMS + "".join(f"CREATE QUERY q{i} AS {q};" for i, q in enumerate(queries))
    )
    streams = {s.name: s for s in script.catalog.streams()}
    runs = [
        Run(
            q.name,
            (),
            tuple(sorted(s.name for s in base_streams(q.plan))),
            1,
            None,
            (),
            plan=q.plan,
        )
        for q in script.queries
    ]
    plan = make_plan(runs, streams, {})
    in_order = {0: [1, 2], 1: [0, 2], 2: [1, 0]}
    return routes(
        plan,
        {flow.name: 0 if is_level else len(flow.streams) for flow in plan.flows},
        lambda op, i: [t for t in in_order[i] if t < len(op.inputs)],
    )


def in_common(*queries: str) -> int:
    found = {p for route in routes_of(*queries).values() for p in route.prefixes}
    return len(found)


def test_a_join_of_three_begins_as_the_join_of_two_that_it_contains() -> None:
    found = [p for route in routes_of(PAIR, TRIPLE).values() for p in route.prefixes]
    assert in_common(PAIR, TRIPLE) == 2  # new tuples of A probe B, and those of B probe A
    assert all(p.length == 1 for p in found)
    assert {p.columns for p in found} == {((0, 1), (0, 1))}  # what either of them wants


@pytest.mark.parametrize(
    ("other", "shared"),
    [
        ("SELECT C.v FROM A [Range 5], B [Range 3], C WHERE A.k = B.k AND A.v = C.v", 2),
        ("SELECT C.v FROM A [Range 4], B [Range 3], C WHERE A.k = B.k AND B.k = C.k", 0),
        ("SELECT C.v FROM A [Range 5], B [Range 3], C WHERE A.v = B.k AND B.k = C.k", 0),
        ("SELECT C.v FROM A [Range 5], B [Range 3], C WHERE A.k=B.k AND B.k=C.k AND A.v>1", 0),
        ("SELECT C.v FROM A [Range 5], B [Range 3], C WHERE A.k=B.k AND B.k=C.k AND A.v<B.v", 0),
    ],
    ids=["another third", "another window", "another key", "a filter", "a condition"],
)
def test_sources_keys_and_conditions_must_be_the_same(other: str, shared: int) -> None:
    assert in_common(PAIR, other) == shared


def test_flows_must_have_come_to_the_same_instants() -> None:
    assert not any(route.prefixes for route in routes_of(PAIR, TRIPLE, is_level=False).values())


def test_one_join_by_itself_has_nothing_in_common() -> None:
    assert in_common(TRIPLE) == 0


def test_what_is_in_common_is_probed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    probed = 0
    plain = join.probe

    def counted(*args):  # type: ignore[no-untyped-def]
        nonlocal probed
        probed += 1
        return plain(*args)

    monkeypatch.setattr(join, "probe", counted)
    arrivals = {s: [Arrival(0, 1, 1, (1, 2), "+")] for s in "ABC"}

    def probes(*queries: str) -> int:
        nonlocal probed
        probed = 0
        script = compile_script(
            STREAMS + "".join(f"CREATE QUERY q{i} AS {q};" for i, q in enumerate(queries))
        )
        shared_engine(script.catalog, script.queries, arrivals, Options())
        return probed

    together = probes(TRIPLE, TRIPLE.replace("SELECT", "SELECT DISTINCT").replace("C.v", "A.v"))
    assert together < 2 * probes(TRIPLE)


@st.composite
def workloads(draw: st.DrawFn) -> tuple[str, dict[str, list[Arrival]]]:
    """Joins of two or three of the streams, alike in windows and conditions more often than not."""
    text = STREAMS
    for i in range(draw(st.integers(2, 4))):
        names = draw(st.sampled_from([("A", "B"), ("A", "B", "C"), ("B", "A"), ("B", "A", "C")]))
        windows = {"A": draw(st.sampled_from([5, 5, 2])), "B": 3, "C": 9}
        where = [draw(st.sampled_from(["A.k = B.k", "A.k = B.k", "A.v = B.k"]))]
        if "C" in names:
            where.append(draw(st.sampled_from(["B.k = C.k", "A.v = C.v"])))
        where += draw(st.lists(st.sampled_from(["A.v < B.v", "A.v > 0"]), max_size=1))
        shown = draw(
            st.lists(st.sampled_from([f"{n}.{c}" for n in names for c in "kv"]), min_size=1)
        )
        columns = ", ".join(f"{c} AS c{n}" for n, c in enumerate(shown))
        top = draw(st.sampled_from(["SELECT DISTINCT", "SELECT", "RSTREAM SELECT"]))
        sources = ", ".join(f"{n} [Range {windows[n]}]" for n in names)
        text += f"CREATE QUERY q{i} AS {top} {columns} FROM {sources} WHERE {' AND '.join(where)};"
    inputs = {}
    for stream in "ABC":
        at, arrivals = 0, []
        for position in range(draw(st.integers(0, 6))):
            at += draw(st.integers(0, 3))
            row = (draw(st.sampled_from([1, 2, None])), draw(st.integers(0, 2)))
            arrivals.append(Arrival(0, at, position, row, "+"))
        inputs[stream] = arrivals
    return text, inputs


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(workloads(), st.integers(1, 4), st.sampled_from(WAYS))
def test_results_are_those_of_the_reference(workload, tuples_per_tick, way):  # type: ignore[no-untyped-def]
    agree(*workload, tuples_per_tick, way)


def test_who_comes_first_in_the_text_makes_a_difference() -> None:
    """New tuples of an input probe new ones of the inputs behind it, old ones of those before."""
    text = STREAMS + (
        "CREATE QUERY triple AS RSTREAM SELECT A.v, C.v FROM C [Range 9], A [Range 5], B [Range 3] "
        "WHERE A.k = B.k AND B.v = C.v;"
        "CREATE QUERY pair AS RSTREAM SELECT A.v, B.v FROM B [Range 3], A [Range 5] "
        "WHERE A.k = B.k;"
    )
    inputs = {s: [Arrival(0, at, at, (1, at), "+") for at in range(4)] for s in "ABC"}
    agree(text, inputs, tuples_per_tick=2, way="one task")


def agree(text: str, inputs: dict[str, list[Arrival]], tuples_per_tick: int, way: str) -> None:
    script = compile_script(text)
    found = shared_engine(
        script.catalog,
        script.queries,
        inputs,
        {},
        tuples_per_tick=tuples_per_tick,
        **divided(way),
    )
    for query in script.queries:
        report = compare(query, reference.evaluate(query.plan, inputs), found[query.name])
        assert not report, report
