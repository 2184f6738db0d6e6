"""Two hosts and one query, with capacities and without: who plans whole queries finds the best."""

import json
import random
from typing import Any

import pytest

from thalweg.placement.cost import Weights, cost_of
from thalweg.placement.documents import read_problem
from thalweg.placement.strategies import find_strategy
from thalweg.placement.strategy import Options

OPTIONS = Options(weights=Weights(network=1.0, cpu=1.0, balance=0.0))
CAPACITIES: list[dict[str, float]] = [
    {},
    {"cpu": 10, "out_bps": 1e8, "in_bps": 1e8},
    {"cpu": 3, "out_bps": 5e6, "in_bps": 5e6},
]


def tiny(rng: random.Random) -> dict[str, Any]:
    capacities = rng.choice(CAPACITIES)
    rates, count = [1e6, 2e6, 4e6], rng.choice([1, 2, 3])
    streams: list[dict[str, Any]] = [
        {"name": f"s{i}", "rate_bps": rng.choice(rates), "home": rng.choice(["h0", "h1"])}
        for i in range(count)
    ]
    operators = []
    before = "s0"
    for i in range(1, max(count, 2)):
        inputs = [before, f"s{i}"] if i < count else [before]
        before = f"joined{i}"
        streams.append({"name": before, "rate_bps": rng.choice([0.0, *rates])})
        cpu = rng.choice([0, 1])
        operators.append({"name": f"o{i}", "inputs": inputs, "output": before, "cpu": cpu})
    query = {"name": "q", "wants": before}
    if rng.random() < 0.5:
        query["proxy"] = rng.choice(["h0", "h1"])
    hosts = [{"name": f"h{i}", **capacities} for i in range(2)]
    return {"hosts": hosts, "streams": streams, "operators": operators, "queries": [query]}


@pytest.mark.parametrize("strategy", ["sqpr", "sqpr-milp"])
def test_one_query_on_two_hosts_costs_what_the_optimum_does(strategy: str) -> None:
    rng = random.Random("tiny")
    for _ in range(40):
        document = tiny(rng)
        problem = read_problem(json.dumps(document))
        best = find_strategy("milp").plan(problem, OPTIONS).deployment
        found = find_strategy(strategy).plan(problem, OPTIONS).deployment
        assert cost_of(problem, found) == cost_of(problem, best), json.dumps(document)


def test_a_host_without_a_limit_is_not_one_without_a_cost() -> None:
    document = {
        "hosts": [{"name": "h0"}, {"name": "h1"}],
        "streams": [
            {"name": "a", "rate_bps": 1e6, "home": "h1"},
            {"name": "b", "rate_bps": 2e6, "home": "h1"},
            {"name": "ab", "rate_bps": 0},
        ],
        "operators": [{"name": "join", "inputs": ["a", "b"], "output": "ab", "cpu": 0}],
        "queries": [{"name": "q", "wants": "ab"}],
    }
    problem = read_problem(json.dumps(document))
    for strategy in ("sqpr", "milp", "heuristic", "sqpr-milp", "soda"):
        found = find_strategy(strategy).plan(problem, OPTIONS).deployment
        assert cost_of(problem, found).network_bps == 0, strategy
