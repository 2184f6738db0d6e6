import pytest
from tests.placement.problems import problem_of

from thalweg.placement.abstract import abstract_plans
from thalweg.placement.heuristic.listing import TooManyPlans, first_plan, list_plans
from thalweg.placement.sqpr.workload import Workload, make_problem


def plans_of(ways, **options):
    problem = make_problem(Workload(hosts=2, base_streams=9, queries=1, ways=(ways,)), seed=3)
    return problem, list_plans(abstract_plans(problem, int(problem.queries.wanted[0])), **options)


@pytest.mark.parametrize(("ways", "count"), [(2, 1), (3, 3), (4, 15), (5, 105)])
def test_a_join_has_as_many_plans_as_there_are_trees(ways, count):
    _, plans = plans_of(ways)
    assert len(set(plans)) == len(plans) == count


def test_a_plan_makes_every_stream_once_and_in_order():
    problem, plans = plans_of(4)
    for plan in plans:
        there = set(range(9))
        for operator in plan:
            assert there.issuperset(problem.operators.inputs[operator].tolist())
            there.add(int(problem.operators.output[operator]))
        assert len(there) == 9 + 3
        assert int(problem.queries.wanted[0]) in there


def test_a_base_stream_has_the_empty_plan():
    problem, _ = plans_of(2)
    assert list_plans(abstract_plans(problem, 0)) == ((),)


def test_a_stream_that_two_inputs_need_is_made_in_one_way():
    """Two makers of m; both f(m) and g(m) need it; the whole has two plans and not four."""
    document = {
        "hosts": [{"name": "h"}],
        "streams": [
            {"name": "a", "rate_bps": 1, "home": "h"},
            *({"name": n, "rate_bps": 1} for n in ("m", "f", "g", "fg")),
        ],
        "operators": [
            {"name": "m1", "inputs": ["a"], "output": "m"},
            {"name": "m2", "inputs": ["a"], "output": "m"},
            {"name": "f", "inputs": ["m"], "output": "f"},
            {"name": "g", "inputs": ["m"], "output": "g"},
            {"name": "fg", "inputs": ["f", "g"], "output": "fg"},
        ],
    }
    assert list_plans(abstract_plans(problem_of(document), 4)) == ((0, 2, 3, 4), (1, 2, 3, 4))


def test_too_many_plans_are_refused_rather_than_listed():
    with pytest.raises(TooManyPlans, match="more than 104"):
        plans_of(5, at_most=104)


def test_the_first_plan_is_one_of_them_and_follows_the_order_of_the_problem():
    problem, plans = plans_of(4)
    first = first_plan(abstract_plans(problem, int(problem.queries.wanted[0])))
    assert first in plans
    assert first[-1] == int(problem.makers[int(problem.queries.wanted[0])][0])
