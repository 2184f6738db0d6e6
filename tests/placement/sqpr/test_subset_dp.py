"""The programme finds the cheapest plan there is, and never one that does not fit."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.placement.problems import TWO_WAY, problem_of

from thalweg.placement.abstract import AbstractPlans, abstract_plans
from thalweg.placement.cost import Weights
from thalweg.placement.ledger import Ledger
from thalweg.placement.problem import Hosts, Problem
from thalweg.placement.rows import Run, Send
from thalweg.placement.sqpr.offers import offer
from thalweg.placement.sqpr.prices import Prices, prices
from thalweg.placement.sqpr.reuse_rules import DISCOUNT, ReuseForecast
from thalweg.placement.sqpr.shortages import shortages
from thalweg.placement.sqpr.subset_dp import cheapest, plan_query
from thalweg.placement.sqpr.workload import Workload, make_problem

TINY = Workload(hosts=3, base_streams=4, queries=3, ways=(2, 3), cpu=1e6, selectivity=(0.1, 0.9))
BLIND = ReuseForecast()  # has seen nothing, and so favours nothing


def random_prices(rng: np.random.Generator, hosts: int) -> Prices:
    return Prices(
        rng.uniform(0, 1, hosts), rng.uniform(0, 1e-7, hosts), rng.uniform(0, 1e-7, hosts), None
    )


def cheapest_by_trial(ledger: Ledger, plans: AbstractPlans, now: Prices) -> float:
    """All operators for all streams, all hosts for all operators: nothing is remembered."""
    rate, gamma = ledger.problem.streams.rate_bps, ledger.problem.operators.cpu
    hosts = range(len(ledger.problem.hosts))

    def bring(stream: int, host: int) -> float:
        best = min(
            have(stream, source)
            + (0.0 if source == host else rate[stream] * (now.out_bps[source] + now.in_bps[host]))
            for source in hosts
        )
        return float(best)

    def have(stream: int, host: int) -> float:
        if ledger.available[stream, host]:
            return 0.0
        ways = [
            gamma[o] * now.cpu[host] + sum(bring(i, host) for i in plans.inputs[o])
            for o in plans.makers[stream]
        ]
        return float(min(ways, default=np.inf))

    wanted = plans.wanted
    return min(bring(wanted, h) + float(rate[wanted] * now.out_bps[h]) for h in hosts)


@given(st.integers(0, 10_000))
def test_no_plan_is_cheaper(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = make_problem(TINY, seed)
    ledger = Ledger(problem)
    for query, wanted in enumerate(problem.queries.wanted.tolist()):
        plans = abstract_plans(problem, wanted)
        now = random_prices(rng, len(problem.hosts))
        expected = cheapest_by_trial(ledger, plans, now)
        piece = plan_query(ledger, plans, now, BLIND)
        assert piece is not None
        assert price_of(problem, now, piece.runs, piece.sends, piece.host, wanted) == (
            pytest.approx(expected)
        )
        ledger.add(piece)
        ledger.serve(query, piece.host)


def price_of(
    problem: Problem,
    now: Prices,
    runs: tuple[Run, ...],
    sends: tuple[Send, ...],
    host: int,
    wanted: int,
) -> float:
    rate = problem.streams.rate_bps
    total = sum(problem.operators.cpu[o] * now.cpu[h] for h, o in runs)
    total += sum(rate[s] * (now.out_bps[h] + now.in_bps[m]) for h, m, s in sends)
    return float(total + rate[wanted] * now.out_bps[host])


@given(st.integers(0, 10_000))
def test_links_that_are_alike_change_nothing(seed: int) -> None:
    """The programme has one way for free links and one for limited ones: both must agree."""
    rng = np.random.default_rng(seed)
    free = make_problem(TINY, seed)
    hosts = replace(free.hosts, link_bps=np.full((3, 3), 1e18))
    linked = Problem(hosts, free.streams, free.operators, free.queries)
    now = random_prices(rng, 3)
    costs = []
    for problem, fees in ((free, now), (linked, replace(now, link_bps=np.zeros((3, 3))))):
        wanted = int(problem.queries.wanted[0])
        piece = plan_query(Ledger(problem), abstract_plans(problem, wanted), fees, BLIND)
        assert piece is not None
        costs.append(price_of(problem, now, piece.runs, piece.sends, piece.host, wanted))
    assert costs[0] == pytest.approx(costs[1])


def ledger_and_plans(document: dict) -> tuple[Ledger, AbstractPlans]:
    problem = problem_of(document)
    return Ledger(problem), abstract_plans(problem, int(problem.queries.wanted[0]))


def test_a_full_link_is_passed_by_a_relay() -> None:
    links = [{"from": h, "to": m, "bps": 1} for h, m in (("h0", "h1"), ("h1", "h0"), ("h1", "h2"))]
    ledger, plans = ledger_and_plans(TWO_WAY | {"links": links})
    piece = plan_query(ledger, plans, prices(ledger, Weights()), BLIND)
    assert piece is not None
    assert set(piece.sends) == {Send(0, 2, 0), Send(2, 1, 0)}
    assert piece.runs == (Run(1, 0),)


def test_a_pinned_operator_runs_at_its_pin() -> None:
    operators = [TWO_WAY["operators"][0] | {"pinned": "h2"}]
    ledger, plans = ledger_and_plans(TWO_WAY | {"operators": operators})
    piece = plan_query(ledger, plans, prices(ledger, Weights()), BLIND)
    assert piece is not None
    assert piece.runs == (Run(2, 0),)


def test_a_proxy_serves() -> None:
    ledger, plans = ledger_and_plans(TWO_WAY)
    piece = plan_query(ledger, plans, prices(ledger, Weights()), BLIND, proxy=2)
    assert piece is not None
    assert piece.host == 2


def test_what_fits_piece_by_piece_but_not_together_is_not_offered() -> None:
    """Two joins of 6 CPU each can't both run on the one host that has 10."""
    document = {
        "hosts": [
            {"name": "h0", "cpu": 10, "out_bps": 100, "in_bps": 100},
            {"name": "h1", "cpu": 7, "out_bps": 100, "in_bps": 100},
        ],
        "streams": [
            *({"name": s, "rate_bps": 10, "home": "h0"} for s in "abc"),
            {"name": "ab", "rate_bps": 1},
            {"name": "abc", "rate_bps": 1},
        ],
        "operators": [
            {"name": "1", "inputs": ["a", "b"], "output": "ab", "cpu": 6},
            {"name": "2", "inputs": ["ab", "c"], "output": "abc", "cpu": 6},
        ],
        "queries": [{"name": "q", "wants": "abc"}],
    }
    ledger, plans = ledger_and_plans(document)
    piece = plan_query(ledger, plans, prices(ledger, Weights()), BLIND)
    assert piece is not None
    assert {run.host for run in piece.runs} == {0, 1}
    assert shortages(ledger, piece) == []


def test_nothing_is_found_where_nothing_fits_and_the_nearest_plan_lacks_least() -> None:
    hosts = [h | {"cpu": c} for h, c in zip(TWO_WAY["hosts"], (1, 6, 2), strict=True)]
    ledger, plans = ledger_and_plans(TWO_WAY | {"hosts": hosts})
    now = prices(ledger, Weights())
    assert plan_query(ledger, plans, now, BLIND) is None
    near = cheapest(ledger, plans, offer(ledger, now, strict=False), BLIND)
    assert near is not None
    (lack,) = shortages(ledger, near)
    assert (lack.resource, lack.host, lack.need, lack.left) == ("cpu", 1, 7.0, 6.0)


def test_of_two_equal_orders_the_one_that_others_will_reuse_is_chosen() -> None:
    problem = make_problem(replace(TINY, hosts=1, base_streams=3, ways=(3,), queries=1), 1)
    plans = abstract_plans(problem, int(problem.queries.wanted[0]))
    for pair in ((0, 1), (0, 2), (1, 2)):
        forecast = ReuseForecast(seen=100, counts={pair[0]: 20, pair[1]: 20})
        now = Prices(np.ones(1), np.zeros(1), np.zeros(1), None)
        piece = plan_query(Ledger(_alike(problem)), plans, now, forecast)
        assert piece is not None
        names = {problem.operators.names[o] for _, o in piece.runs}
        assert f"s{pair[0]} ⋈ s{pair[1]}" in names


def _alike(problem: Problem) -> Problem:
    """All rates and costs equal: only the forecast can tell join orders apart."""
    operators = replace(problem.operators, cpu=np.ones(len(problem.operators)))
    streams = replace(problem.streams, rate_bps=np.ones(len(problem.streams)))
    return Problem(problem.hosts, streams, operators, problem.queries)


def test_a_sure_reuse_takes_off_no_more_than_the_discount() -> None:
    problem = make_problem(TINY, 1)
    plans = abstract_plans(problem, int(problem.queries.wanted[0]))
    sure = ReuseForecast(seen=1, counts=dict.fromkeys(range(4), 1))
    assert sure.discount(plans, plans.wanted) == DISCOUNT
    assert BLIND.discount(plans, plans.wanted) == 0.0


@pytest.mark.parametrize(("cpu", "bandwidth"), list(product((0.0, np.inf), repeat=2)))
def test_no_capacity_and_endless_capacity_have_a_price(cpu: float, bandwidth: float) -> None:
    amount = np.full(3, bandwidth)
    problem = make_problem(TINY, 1)
    hosts = Hosts(problem.hosts.names, np.full(3, cpu), amount, amount)
    now = prices(
        Ledger(Problem(hosts, problem.streams, problem.operators, problem.queries)), Weights()
    )
    for column in (now.cpu, now.out_bps, now.in_bps):
        assert np.isfinite(column).all()
