"""Aggregates over sliding windows share what each pane adds to each group."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conformance.runner import compare
from tests.engine.shared.adapter import shared_engine

from thalweg.cql.compile import compile_script
from thalweg.engine import reference
from thalweg.engine.arrivals import Arrival
from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.compile.columns import needed_columns
from thalweg.engine.shared.compile.panes import pane_width
from thalweg.engine.shared.compile.planning import Run, make_plan
from thalweg.engine.shared.compile.query import compile_query
from thalweg.engine.shared.tick.executors import InProcess
from thalweg.plan.windows import TimeWindow

STREAM = """
CREATE STREAM S (k INTEGER, v INTEGER, x DOUBLE, price DECIMAL(6, 2)) TIMESTAMP BY at;
"""
CALLS = (
    "COUNT(*) AS n",
    "SUM(v) AS total, COUNT(*) AS n",
    "AVG(x) AS mean, SUM(x) AS total",
    "MIN(v) AS low, MAX(v) AS high, SUM(price) AS paid",
    "MAX(x) AS high, COUNT(x) AS known",
)
TOPS = ("", "ISTREAM ", "DSTREAM ", "RSTREAM ")


def plan_of(*queries: str):  # type: ignore[no-untyped-def]
    script = compile_script(
        STREAM + "".join(f"CREATE QUERY q{i} AS {q};" for i, q in enumerate(queries))
    )
    runs = [Run(q.name, (), ("S",), 1, None, (), plan=q.plan) for q in script.queries]
    return make_plan(runs, {s.name: s for s in script.catalog.streams()}, {})


def partials_of(plan) -> set[ph.Partials]:  # type: ignore[no-untyped-def]
    return {
        op
        for f in plan.flows
        for _, out in f.outputs
        for op in ph.walk(out)
        if isinstance(op, ph.Partials)
    }


@pytest.mark.parametrize(
    ("length", "slide", "width"),
    [
        (20, 10, 10),
        (3_600_000, 60_000, 60_000),
        (90_000, 60_000, 10_000),
        (15, 5, 1),  # no step of the ladder divides both
        (20, 1, 1),  # without Slide, every instant is a pane
        (None, 100, 100),
    ],
)
def test_a_pane_is_the_widest_step_that_divides_the_window(length, slide, width):  # type: ignore[no-untyped-def]
    assert pane_width(TimeWindow(length, slide), resolution_us=1000) == width


@given(
    st.integers(0, 9), st.integers(1, 9), st.integers(-50, 50), st.integers(1, 9), st.integers(1, 9)
)
def test_tuples_of_a_pane_enter_and_leave_together(length, slide, pane, one, other):  # type: ignore[no-untyped-def]
    window = TimeWindow(10 * length, 10 * slide)
    assert pane_width(window, 1000) == 10
    assert window.interval(10 * pane + one) == window.interval(10 * pane + other)


def test_windows_and_slides_over_one_grouping_share_their_panes() -> None:
    plan = plan_of(
        "SELECT k, COUNT(*) AS n, SUM(v) AS s FROM S [Range 40 Slide 10] GROUP BY k",
        "SELECT k, COUNT(*) AS n, AVG(v) AS s FROM S [Range 90 Slide 30] GROUP BY k",
        "SELECT k, SUM(v) AS s FROM S [Range 20 Slide 20] GROUP BY k HAVING SUM(v) > 3",
    )
    assert len(partials_of(plan)) == 1


def test_other_groups_filters_and_distinct_values_have_their_own() -> None:
    plan = plan_of(
        "SELECT k, COUNT(*) AS n FROM S [Range 40 Slide 10] GROUP BY k",
        "SELECT v, COUNT(*) AS n FROM S [Range 40 Slide 10] GROUP BY v",
        "SELECT k, COUNT(*) AS n FROM S [Range 40 Slide 10] WHERE v > 1 GROUP BY k",
        "SELECT k, COUNT(DISTINCT v) AS n FROM S [Range 40 Slide 10] GROUP BY k",
    )
    assert len(partials_of(plan)) == 3  # the last reads its tuples one by one


def test_only_the_columns_of_keys_and_arguments_are_needed() -> None:
    plan = plan_of("SELECT k, SUM(v) AS s FROM S [Range 40 Slide 10] GROUP BY k")
    (output,) = (out for f in plan.flows for _, out in f.outputs)
    assert needed_columns([output]) == {"S": {0, 1}}
    assert isinstance(output, ph.Output)
    assert any(isinstance(o, ph.Panes) for o in ph.walk(output))


def test_a_query_without_slide_has_no_panes() -> None:
    script = compile_script(STREAM + "CREATE QUERY q AS SELECT COUNT(*) AS n FROM S [Range 40];")
    assert not any(isinstance(o, ph.Panes) for o in ph.walk(compile_query(script.queries[0].plan)))


@st.composite
def workloads(draw: st.DrawFn) -> tuple[str, list[Arrival]]:
    """A few queries of one or two groupings under drawn windows, over gaps and crowded panes."""
    text = STREAM
    for i in range(draw(st.integers(1, 4))):
        length, slide = draw(st.integers(0, 9)), draw(st.integers(1, 5))
        window = draw(
            st.sampled_from([f"Range {10 * length} Slide {10 * slide}", "Range 15 Slide 5"])
        )
        keys = draw(st.sampled_from(["", "k", "v, k"]))
        where = draw(st.sampled_from(["", "", " WHERE v > 1"]))
        shown = ", ".join(filter(None, [keys, draw(st.sampled_from(CALLS))]))
        by = f" GROUP BY {keys}" if keys else ""
        top = draw(st.sampled_from(TOPS))
        text += f"CREATE QUERY q{i} AS {top}SELECT {shown} FROM S [{window}]{where}{by};"
    at, arrivals = 0, []
    for position in range(draw(st.integers(1, 14))):
        at += draw(st.sampled_from([0, 1, 3, 10, 11, 40, 95]))
        x = draw(st.sampled_from([None, 0.1, 1e16, -3.5]))
        price = draw(st.sampled_from([Decimal("1.10"), Decimal("0.05"), None]))
        row = (draw(st.integers(1, 2)), draw(st.integers(0, 3)), x, price)
        arrivals.append(Arrival(0, at, position, row, "+"))
    return text, arrivals


def test_panes_are_kept_as_long_as_a_window_wants_them() -> None:
    windows = ("Range 40 Slide 10", "Range 90 Slide 30", "Range 0 Slide 20")
    text = STREAM + "".join(
        f"CREATE QUERY q{i} AS SELECT k, SUM(x) AS s, MIN(v) AS low FROM S [{w}] GROUP BY k;"
        for i, w in enumerate(windows)
    )
    # One tuple to a tick, so that segments are merged and expire; ever larger lanes.
    arrivals = [Arrival(0, 3 * i, i, (i % 2, i % 5, 2.0**i, None), "+") for i in range(60)]
    agree(text, arrivals, tuples_per_tick=1, tasks=1)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(workloads(), st.integers(1, 5), st.integers(1, 2))
def test_results_are_those_of_the_reference(workload, tuples_per_tick, tasks):  # type: ignore[no-untyped-def]
    agree(*workload, tuples_per_tick, tasks)


def agree(text: str, arrivals: list[Arrival], tuples_per_tick: int, tasks: int) -> None:
    script = compile_script(text)
    found = shared_engine(
        script.catalog,
        script.queries,
        {"S": arrivals},
        {},
        tuples_per_tick=tuples_per_tick,
        executor=InProcess(tasks),
    )
    for query in script.queries:
        report = compare(query, reference.evaluate(query.plan, {"S": arrivals}), found[query.name])
        assert not report, report
