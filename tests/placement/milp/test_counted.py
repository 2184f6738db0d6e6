"""Copies that are counted are as good as copies that are routed: same optimum, valid plans."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.placement.problems import TWO_WAY, problem_of

from thalweg.placement.cost import Weights
from thalweg.placement.ledger import Ledger
from thalweg.placement.milp.counted import build_counted, chosen_counted
from thalweg.placement.milp.highs import solve
from thalweg.placement.milp.instance import Instance
from thalweg.placement.milp.model import build
from thalweg.placement.milp.solving import Rows, values_of
from thalweg.placement.milp.whole import whole
from thalweg.placement.sqpr.workload import MBPS, Workload, make_problem
from thalweg.placement.verify import verify

# Bandwidth for two copies: relays decide who is admitted.
NARROW = Workload(
    hosts=4, base_streams=5, queries=4, ways=(2, 3), cpu_share=0.8, host_bps=22 * MBPS, zipf=1.0
)


def value(model_costs: list[float], values: list[float] | None) -> float:
    assert values is not None
    return sum(cost * v for cost, v in zip(model_costs, values, strict=True))


@settings(max_examples=8)
@given(st.integers(0, 10_000))
def test_both_forms_of_the_model_have_the_same_optimum(seed: int) -> None:
    instance = whole(make_problem(NARROW, seed), hops=3)
    routed, counted = build(instance, Weights()), build_counted(instance, Weights())
    assert len(counted.costs) < len(routed.costs)
    one, two = (solve(m, nodes=100_000, gap=0.0, seconds=60.0) for m in (routed, counted))
    assert one.proven
    assert two.proven
    assert value(counted.costs, two.values) == pytest.approx(value(routed.costs, one.values))


@settings(max_examples=8)
@given(st.integers(0, 10_000))
def test_counted_copies_can_be_handed_out_and_the_rows_are_a_solution_again(seed: int) -> None:
    problem = make_problem(NARROW, seed)
    instance = whole(problem)
    model = build_counted(instance, Weights())
    answer = solve(model, nodes=100_000, gap=0.0, seconds=60.0)
    assert answer.values is not None
    rows = Rows(*chosen_counted(instance, model, answer.values))
    ledger = Ledger(problem)
    for run in rows.runs:
        ledger.add_run(run)
    for send in rows.sends:
        ledger.add_send(send)
    assert verify(problem, ledger.deployment()) == ()
    start = values_of(instance, model, rows)
    assert value(model.costs, start) == pytest.approx(value(model.costs, answer.values), abs=1e-6)
    again = solve(model, nodes=0, gap=0.0, seconds=60.0, start=start)
    assert value(model.costs, again.values) == pytest.approx(value(model.costs, start), abs=1e-6)


def test_no_copies_come_from_nowhere() -> None:
    """The only copy of a can't leave: hosts that pass copies on to each other are no source."""
    hosts = [h | {"out_bps": 0 if h["name"] == "h0" else 100} for h in TWO_WAY["hosts"]]
    operators = [TWO_WAY["operators"][0] | {"pinned": "h2"}]
    problem = problem_of(TWO_WAY | {"hosts": hosts, "operators": operators})
    answer = solve(build_counted(whole(problem), Weights()), nodes=1000, gap=0.0, seconds=60.0)
    assert answer.proven
    assert answer.values is not None
    assert sum(answer.values) == 0


def test_where_links_have_limits_copies_are_not_interchangeable() -> None:
    problem = problem_of(TWO_WAY | {"link_bps": 50})
    instance: Instance = whole(problem)
    with pytest.raises(ValueError, match="who sends to whom"):
        build_counted(instance, Weights())
