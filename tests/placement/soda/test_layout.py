import numpy as np
import pytest
from tests.placement.networked import SMALL
from tests.placement.problems import two_way

from thalweg.placement.arrays import NONE
from thalweg.placement.cost import load_of
from thalweg.placement.deployment import deployment
from thalweg.placement.soda.layout import Layout
from thalweg.placement.sqpr.workload import make_problem


def numbers(layout):
    return [layout.cpu, layout.out_bps, layout.in_bps, layout.link_bps.ravel()]


def random_layout(seed):
    """Every stream's first maker, anywhere; a third of all queries served."""
    problem = make_problem(SMALL, seed)
    rng = np.random.default_rng(seed)
    layout = Layout(problem)
    for makers in problem.makers:
        if len(makers):
            layout.put(int(makers[0]), int(rng.integers(len(problem.hosts))))
    served = range(0, len(problem.queries), 3)
    for query in served:
        layout.serve(int(problem.queries.wanted[query]), NONE)
    return problem, layout, served


@pytest.mark.parametrize("seed", range(5))
def test_loads_are_those_of_the_deployment(seed):
    problem, layout, served = random_layout(seed)
    wanted = problem.queries.wanted
    deployed = deployment(
        len(problem.queries),
        runs=[(h, o) for o, h in layout.host_of.items()],
        sends=list(layout.sends()),
        serves={q: layout.origin(int(wanted[q])) for q in served},
    )
    load = load_of(problem, deployed)
    for mine, theirs in zip(numbers(layout), (load.cpu, load.out_bps, load.in_bps), strict=False):
        assert mine == pytest.approx(theirs)


@pytest.mark.parametrize("seed", range(5))
def test_what_is_put_and_lifted_leaves_no_trace(seed):
    problem, layout, _ = random_layout(seed)
    before = [n.copy() for n in numbers(layout)]
    sends = sorted(layout.sends())
    rng = np.random.default_rng(seed)
    for operator in rng.permutation(list(layout.host_of))[:20].tolist():
        host = layout.lift(operator)
        layout.put(operator, int(rng.integers(len(problem.hosts))))
        layout.lift(operator)
        layout.put(operator, host)
    assert sorted(layout.sends()) == sends
    for now, then in zip(numbers(layout), before, strict=True):
        assert now == pytest.approx(then, abs=1e-3)  # of millions


def test_a_stream_goes_once_to_a_host_however_many_use_it_there():
    layout = Layout(two_way())
    layout.put(0, 2)
    assert sorted(layout.sends()) == [(0, 2, 0), (1, 2, 1)]
    layout.serve(2, proxy=0)
    layout.serve(2, proxy=0)
    assert sorted(layout.sends()) == [(0, 2, 0), (1, 2, 1), (2, 0, 2)]
    assert layout.out_bps.tolist() == [40 + 5, 30, 5]


def test_a_host_hands_a_stream_out_once_whoever_asks():
    layout = Layout(two_way())
    layout.put(0, 1)
    layout.serve(2, NONE)
    layout.serve(2, proxy=1)
    assert layout.out_bps.tolist() == [40, 5, 0]
    layout.lift(0)
    layout.put(0, 0)
    assert layout.out_bps.tolist() == [5 + 5, 30 + 5, 0]  # made and served at h0, wanted at h1


def test_a_result_is_handed_out_once():
    layout = Layout(two_way())
    layout.serve(2, NONE)
    layout.put(0, 1)
    layout.serve(2, NONE)
    assert layout.out_bps.tolist() == [40, 5, 0]
    layout.serve(2, NONE, -1)
    assert layout.out_bps.tolist() == [40, 5, 0]
    layout.serve(2, NONE, -1)
    assert layout.out_bps.tolist() == [40, 0, 0]


def test_the_worst_resource_is_named():
    layout = Layout(two_way())
    assert layout.worst() is None
    layout.cpu[1] = 15.0
    layout.in_bps[2] = 120.0
    assert layout.overload() == pytest.approx(0.5 + 0.2)
    assert layout.worst() == ("cpu", 1, 15.0, 10.0)
