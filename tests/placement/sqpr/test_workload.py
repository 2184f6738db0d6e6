"""Synthetic workloads are what section V-A of the source says, and the same for the same seed."""

from dataclasses import replace

import numpy as np
import pytest

from thalweg.placement.abstract import AggregateHost, abstract_plans, cpu_with_full_reuse
from thalweg.placement.documents import write_problem
from thalweg.placement.sqpr.workload import QUICK, Workload, make_problem


def test_the_same_seed_makes_the_same_problem_and_another_seed_another() -> None:
    assert write_problem(make_problem(QUICK, 3)) == write_problem(make_problem(QUICK, 3))
    assert write_problem(make_problem(QUICK, 3)) != write_problem(make_problem(QUICK, 4))


def test_joins_come_in_equal_parts_and_streams_are_spread_evenly() -> None:
    problem = make_problem(QUICK, 1)
    ways = [problem.streams.names[s].count("⋈") + 1 for s in problem.queries.wanted]
    assert [ways.count(n) for n in (2, 3, 4)] == [50, 50, 50]
    homes = problem.streams.home[problem.streams.home >= 0]
    assert np.bincount(homes).tolist() == [5] * 10


def test_a_join_of_four_has_all_its_orders() -> None:
    problem = make_problem(replace(QUICK, ways=(4,), queries=1), 1)
    plans = abstract_plans(problem, int(problem.queries.wanted[0]))
    assert len(plans.streams) == 4 + 6 + 4 + 1
    assert len(plans.operators) == 6 * 1 + 4 * 3 + 1 * 7
    assert plans.streams[-1] == problem.queries.wanted[0]
    position = {s: i for i, s in enumerate(plans.streams)}
    for operator, inputs in plans.inputs.items():
        output = int(problem.operators.output[operator])
        assert all(position[s] < position[output] for s in inputs)


def test_equal_sub_joins_of_different_queries_are_one_stream() -> None:
    problem = make_problem(QUICK, 1)
    assert len(set(problem.streams.names)) == len(problem.streams)
    shared = [s for s in set(problem.queries.wanted.tolist()) if "⋈" in problem.streams.names[s]]
    assert len(shared) < len(problem.queries)


def test_rates_follow_selectivity_whatever_the_join_order() -> None:
    problem = make_problem(QUICK, 1)
    for name, rate in zip(problem.streams.names, problem.streams.rate_bps, strict=True):
        ways = name.count("⋈") + 1
        if ways > 1:
            assert 0.001 <= rate / (ways * QUICK.rate_bps) <= 0.005


def test_cpu_is_the_given_share_of_what_full_reuse_needs() -> None:
    problem = make_problem(QUICK, 1)
    assert problem.hosts.cpu.sum() == pytest.approx(0.75 * cpu_with_full_reuse(problem))


def test_zipf_makes_queries_overlap_more_than_uniform_choice() -> None:
    uniform = make_problem(replace(QUICK, zipf=0.0), 1)
    skewed = make_problem(replace(QUICK, zipf=2.0), 1)
    assert len(skewed.streams) < len(uniform.streams)


def test_the_aggregate_host_needs_nothing_for_what_it_has() -> None:
    problem = make_problem(QUICK, 1)
    host = AggregateHost(problem)
    wanted = int(problem.queries.wanted[0])
    cpu, operators = host.need(wanted)
    assert cpu == pytest.approx(problem.operators.cpu[list(operators)].sum())
    host.run(operators)
    assert host.need(wanted) == (0.0, ())


def test_a_join_of_more_streams_than_there_are_is_refused() -> None:
    with pytest.raises(ValueError, match="no more than there are"):
        Workload(base_streams=3)
