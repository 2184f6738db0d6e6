"""Replanning moves what drifted or starves, leaves the rest alone, and always ends in what fits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.placement.arrays import NONE
from thalweg.placement.deployment import Deployment
from thalweg.placement.migrations import changes_between, migrations
from thalweg.placement.problem import Problem
from thalweg.placement.sqpr.planner import Sqpr
from thalweg.placement.sqpr.replan import drifted, replan, starved
from thalweg.placement.sqpr.workload import MBPS, Workload, make_problem
from thalweg.placement.strategy import Options
from thalweg.placement.verify import verify

SPACIOUS = Workload(hosts=6, base_streams=24, queries=40, cpu_share=1.5, host_bps=200 * MBPS)
QUICK = Options(work_limit=60)


def deployed(seed: int) -> tuple[Problem, Deployment]:
    problem = make_problem(SPACIOUS, seed)
    planner = Sqpr(problem, QUICK)
    planner.submit(range(len(problem.queries)))
    return problem, planner.deployment()


def with_cpu(problem: Problem, factors: np.ndarray) -> Problem:
    operators = replace(problem.operators, cpu=problem.operators.cpu * factors)
    return Problem(problem.hosts, problem.streams, operators, problem.queries)


def test_where_nothing_changed_nothing_moves() -> None:
    problem, running = deployed(1)
    result = replan(problem, problem, running)
    assert result.deployment == running
    assert result.migrations == result.replanned == result.refusals == ()


def test_only_queries_that_use_what_drifted_are_planned_again() -> None:
    problem, running = deployed(2)
    operator = int(running.runs[0, 1])
    factors = np.ones(len(problem.operators))
    factors[operator] = 3.0
    measured = with_cpu(problem, factors)
    found = drifted(problem, measured, running, threshold=0.2)
    assert found
    result = replan(problem, measured, running)
    assert set(result.replanned) >= found
    untouched = [q for q in np.flatnonzero(running.serves != NONE) if q not in result.replanned]
    assert untouched
    assert verify(measured, result.deployment) == ()
    assert drifted(problem, measured, running, threshold=100.0) == set()


def test_a_starved_host_sheds_the_latest_first() -> None:
    problem, running = deployed(3)
    load = np.bincount(
        running.runs[:, 0], weights=problem.operators.cpu[running.runs[:, 1]], minlength=6
    )
    busy = int(load.argmax())
    cpu = problem.hosts.cpu.copy()
    cpu[busy] = 0.7 * load[busy]
    hosts = replace(problem.hosts, cpu=cpu)
    measured = Problem(hosts, problem.streams, problem.operators, problem.queries)
    assert verify(measured, running) != ()
    listed = starved(measured, running)
    assert listed
    result = replan(problem, measured, running, options=QUICK)
    assert set(result.replanned) == listed
    assert verify(measured, result.deployment) == ()
    moved = [m for m in result.migrations if m.source == busy]
    assert moved


@settings(max_examples=5)
@given(st.integers(0, 1000))
def test_whatever_was_measured_the_result_fits_it(seed: int) -> None:
    problem, running = deployed(seed)
    rng = np.random.default_rng(seed)
    measured = with_cpu(problem, rng.uniform(0.3, 2.5, len(problem.operators)))
    result = replan(problem, measured, running, options=QUICK)
    assert verify(measured, result.deployment) == ()
    lost = {r.query for r in result.refusals}
    admitted = np.flatnonzero(running.serves != NONE).tolist()
    assert {q for q in admitted if result.deployment.serves[q] == NONE} == lost


@settings(max_examples=5)
@given(st.integers(0, 1000))
def test_migrations_and_changes_lead_from_one_deployment_to_the_other(seed: int) -> None:
    problem, before = deployed(seed)
    rng = np.random.default_rng(seed)
    after = replan(problem, with_cpu(problem, rng.uniform(0.5, 2, len(problem.operators))), before)
    runs = {tuple(r) for r in before.runs.tolist()}
    for migration in migrations(problem, before, after.deployment):
        if migration.source is not None:
            runs.remove((migration.source, migration.operator))
        if migration.target is not None:
            runs.add((migration.target, migration.operator))
    assert runs == {tuple(r) for r in after.deployment.runs.tolist()}
    told = changes_between(before, after.deployment)
    started = {(c.host, o) for c in told for o in c.starts}
    assert started == runs - {tuple(r) for r in before.runs.tolist()}


def test_state_moves_with_its_operator() -> None:
    problem, before = deployed(4)
    state = np.arange(len(problem.operators), dtype=float) + 1
    operators = replace(problem.operators, state_bytes=state)
    stateful = Problem(problem.hosts, problem.streams, operators, problem.queries)
    host, operator = before.runs[0].tolist()
    other = (host + 1) % 6
    runs = np.vstack([before.runs[1:], [other, operator]])
    (migration,) = migrations(stateful, before, replace(before, runs=runs))
    assert (migration.source, migration.target) == (host, other)
    assert migration.state_bytes == operator + 1


def test_another_problem_is_refused() -> None:
    problem, running = deployed(5)
    other = make_problem(replace(SPACIOUS, hosts=7), 5)
    with pytest.raises(ValueError, match="other hosts"):
        replan(problem, other, running)
