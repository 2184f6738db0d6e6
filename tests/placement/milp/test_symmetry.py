"""Ordering hosts that are alike saves the solver work and costs no solution."""

from __future__ import annotations

import pytest
from tests.placement.problems import problem_of

from thalweg.placement.cost import Weights
from thalweg.placement.milp.highs import solve
from thalweg.placement.milp.model import build
from thalweg.placement.milp.symmetry import alike, order_alike
from thalweg.placement.milp.whole import whole
from thalweg.placement.problem import Problem


def sources_and_workers(workers: int, pinned: str | None = None) -> Problem:
    """One host has all streams and no CPU; the workers are alike, and have room for one each."""
    names = [f"s{i}" for i in range(4)]
    return problem_of(
        {
            "hosts": [
                {"name": "source", "cpu": 0, "out_bps": 100, "in_bps": 100},
                *(
                    {"name": f"w{i}", "cpu": 10, "out_bps": 100, "in_bps": 100}
                    for i in range(workers)
                ),
            ],
            "streams": [
                *({"name": n, "rate_bps": 1, "home": "source"} for n in names),
                *({"name": f"{n}'", "rate_bps": 1} for n in names),
            ],
            "operators": [
                {"name": n, "inputs": [n], "output": f"{n}'", "cpu": 4 + i, "pinned": pinned}
                for i, n in enumerate(names)
            ],
            "queries": [{"name": n, "wants": f"{n}'"} for n in names],
        }
    )


def test_hosts_without_streams_are_alike_and_others_are_not() -> None:
    assert alike(whole(sources_and_workers(3))) == [[1, 2, 3]]
    assert alike(whole(sources_and_workers(3, pinned="w1"))) == [[1, 3]]


def test_order_costs_no_solution() -> None:
    for workers in (2, 3):
        instance = whole(sources_and_workers(workers), hops=1)
        values = []
        for ordered in (False, True):
            model = build(instance, Weights())
            if ordered:
                order_alike(instance, model)
            answer = solve(model, nodes=100_000, gap=0.0, seconds=60.0)
            assert answer.proven
            assert answer.values is not None
            values.append(sum(c * v for c, v in zip(model.costs, answer.values, strict=True)))
        assert values[0] == pytest.approx(values[1])
