from copy import deepcopy

from tests.placement.problems import TWO_WAY, problem_of

from thalweg.placement.deployment import deployment
from thalweg.placement.problem import Problem
from thalweg.placement.sqpr.impossible import Lack, impossible
from thalweg.placement.strategies import find_strategy
from thalweg.placement.strategy import Options


def with_hosts(**limits):
    hosts = [
        {"name": f"h{i}", "cpu": 10, "out_bps": 100, "in_bps": 100, **limits} for i in range(3)
    ]
    return {**deepcopy(TWO_WAY), "hosts": hosts}


def test_a_query_that_fits_by_itself_is_possible_however_full_the_hosts_are():
    problem = problem_of(TWO_WAY)
    full = deployment(2, runs=[(0, 0)], sends=[(1, 0, 1)], serves={0: 0})
    running = Problem(problem.hosts, problem.streams, problem.operators, problem.queries, full)
    assert impossible(running, 1, Options()) is None


def test_the_lack_of_the_nearest_plan_is_named():
    found = impossible(problem_of(with_hosts(cpu=6)), 0, Options())
    (lack,) = found.lacks
    assert (lack.resource, lack.has, lack.needs) == ("cpu", 6.0, 7.0)


def test_with_all_lacks_made_up_for_the_query_fits():
    """That is what makes it the nearest possible problem."""
    document = with_hosts(cpu=3, out_bps=20, in_bps=12)
    found = impossible(problem_of(document), 0, Options())
    assert len(found.lacks) > 1
    column = {"cpu": "cpu", "bandwidth out": "out_bps", "bandwidth in": "in_bps"}
    for lack in found.lacks:
        document["hosts"][lack.host][column[lack.resource]] = lack.needs
    outcome = find_strategy("sqpr").plan(problem_of(document), Options())
    assert outcome.deployment.admitted == 2
    assert impossible(problem_of(document), 0, Options()) is None


def test_a_link_is_named_with_both_its_ends():
    found = impossible(problem_of({**deepcopy(TWO_WAY), "link_bps": 20}), 0, Options())
    assert Lack("link", 1, 20.0, 30.0, 0) in found.lacks


def test_a_bound_that_nothing_meets_is_told_in_words():
    document = deepcopy(TWO_WAY)
    document["latency_ms"] = [[0, 9, 9], [9, 0, 9], [9, 9, 0]]
    document["queries"][0]["latency_bound_ms"] = 3
    found = impossible(problem_of(document), 0, Options())
    assert found.lacks == ()
    assert "its bound is 3 ms" in found.detail
