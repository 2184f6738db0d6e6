"""The strategy `fragments`: everything starts at home, and `verify` is content."""

import json
import random

import numpy as np
from tests.placement.problems import TWO_WAY, problem_of, two_way
from tests.placement.test_tiny_problems import tiny

from thalweg.placement.documents import read_problem
from thalweg.placement.fragments.initial import FRAGMENTS
from thalweg.placement.strategy import Options
from thalweg.placement.verify import verify


def test_a_join_runs_with_its_faster_side_and_the_slower_one_travels():
    outcome = FRAGMENTS.plan(two_way(), Options())
    assert outcome.deployment.runs.tolist() == [[0, 0]]
    assert outcome.deployment.sends.tolist() == [[1, 0, 1]]
    assert outcome.deployment.admitted == 2
    assert verify(two_way(), outcome.deployment) == ()


def test_what_does_not_fit_at_home_is_refused_and_leaves_nothing_behind():
    document = json.loads(json.dumps(TWO_WAY))
    document["hosts"][0]["cpu"] = 5
    outcome = FRAGMENTS.plan(problem_of(document), Options())
    assert [r.resource for r in outcome.refusals] == ["cpu", "cpu"]
    assert len(outcome.deployment.runs) == len(outcome.deployment.sends) == 0


def test_what_runs_goes_on():
    problem = two_way()
    running = FRAGMENTS.plan(problem, Options()).deployment
    again = FRAGMENTS.plan(problem.with_running(running), Options()).deployment
    assert np.array_equal(again.runs, running.runs)


def test_drawn_problems_are_answered_as_verify_wants():
    rng = random.Random("fragments")
    admitted = 0
    for _ in range(150):
        problem = read_problem(json.dumps(tiny(rng)))
        outcome = FRAGMENTS.plan(problem, Options())
        assert verify(problem, outcome.deployment) == ()
        admitted += outcome.deployment.admitted
        assert outcome.deployment.admitted + len(outcome.refusals) == len(problem.queries)
    assert admitted > 75
