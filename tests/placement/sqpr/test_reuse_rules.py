"""Rules that favour what others may want, and restraint: what each changes, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from thalweg.placement.abstract import abstract_plans
from thalweg.placement.problem import Problem
from thalweg.placement.sqpr.planner import Sqpr
from thalweg.placement.sqpr.reuse_rules import RULES, SmallJoins, reuse_rule
from thalweg.placement.sqpr.workload import MBPS, Workload, make_problem
from thalweg.placement.strategies import find_strategy
from thalweg.placement.strategy import REUSE, Options
from thalweg.placement.verify import verify

ROOMY = Workload(hosts=10, base_streams=100, queries=200, host_bps=1000 * MBPS)


def pairs_joined(problem: Problem, runs: list[list[int]]) -> int:
    """Joins of two joins of two base streams: what a bushy plan ends with."""
    inputs, names = problem.operators.inputs, problem.streams.names
    return sum(all(names[s].count("⋈") == 1 for s in inputs[o].tolist()) for _, o in runs)


def test_the_objective_alone_goes_from_stream_to_stream_and_pairs_do_not() -> None:
    problem = make_problem(replace(ROOMY, ways=(4,), queries=60, cpu_share=2.0), 0)
    bushy = {}
    for rule in ("none", "pairs"):
        planned = find_strategy("sqpr").plan(problem, Options(work_limit=0, reuse=rule))
        bushy[rule] = pairs_joined(problem, planned.deployment.runs.tolist())
    assert bushy["none"] < 10
    assert bushy["pairs"] > 40


def Sqpr_filled(problem: Problem, options: Options):  # noqa: N802
    return find_strategy("sqpr").plan(problem, options).deployment


@pytest.mark.parametrize("strategy", ["sqpr", "heuristic"])
def test_rules_gain_on_the_objective_alone(strategy: str) -> None:
    """Over two seeds; one seed may go either way."""
    admitted = dict.fromkeys(REUSE, 0)
    for seed in range(2):
        problem = make_problem(ROOMY, seed)
        for rule in REUSE:
            options = Options(work_limit=0, reuse=rule)
            deployed = find_strategy(strategy).plan(problem, options).deployment
            assert verify(problem, deployed) == ()
            admitted[rule] += deployed.admitted
    assert admitted["forecast"] > admitted["none"]
    assert admitted["pairs"] > admitted["none"]


def test_the_heuristic_of_the_source_knows_no_rule() -> None:
    problem = make_problem(ROOMY, 1)
    plain = find_strategy("heuristic").plan(problem, Options()).deployment
    none = find_strategy("heuristic").plan(problem, Options(reuse="none")).deployment
    assert plain == none


def test_the_wanted_stream_gets_no_discount_for_being_small() -> None:
    problem = make_problem(replace(ROOMY, ways=(2,), queries=1), 0)
    plans = abstract_plans(problem, int(problem.queries.wanted[0]))
    assert SmallJoins().discount(plans, plans.wanted) == 0.0


def test_options_and_rules_have_the_same_names() -> None:
    assert set(REUSE) == set(RULES)
    assert all(reuse_rule(name) is not None for name in REUSE)
    with pytest.raises(ValueError, match="forecast, pairs, none"):
        Options(reuse="foresight")


def test_restraint_refuses_what_no_single_host_could_take_and_says_so() -> None:
    problem = make_problem(ROOMY, 0)
    planner = Sqpr(problem, Options(work_limit=0, restraint=True))
    told = 0
    for query in range(len(problem.queries)):
        left = planner.ledger.cpu_left.copy()
        decision = planner.submit([query])
        used = left.sum() - planner.ledger.cpu_left.sum()
        assert used <= left.max() + 1e-6
        told += any("restraint" in r.detail for r in decision.refusals)
    assert told > 0


def test_restraint_does_not_shut_out_what_is_larger_than_any_host() -> None:
    problem = make_problem(replace(ROOMY, ways=(4,), queries=1, cpu=25.0), 0)
    assert Sqpr(problem, Options(restraint=True)).submit([0]).admitted == (0,)
