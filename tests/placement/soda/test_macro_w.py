import pytest
from tests.placement.problems import problem_of

from thalweg.placement.cost import Weights
from thalweg.placement.soda.layout import Layout
from thalweg.placement.soda.macro_w import place_all


def problem(cpu=10.0, out_bps=100.0, in_bps=100.0, joins=4, **operator):
    """Joins of a (at h0) with b0, b1, … (at h1), each for 4 CPU."""
    names = [f"b{i}" for i in range(joins)]
    return problem_of(
        {
            "hosts": [
                {"name": h, "cpu": cpu, "out_bps": out_bps, "in_bps": in_bps} for h in ("h0", "h1")
            ],
            "streams": [
                {"name": "a", "rate_bps": 30, "home": "h0"},
                *({"name": b, "rate_bps": 10, "home": "h1"} for b in names),
                *({"name": f"a{b}", "rate_bps": 1} for b in names),
            ],
            "operators": [
                {"name": f"a⋈{b}", "inputs": ["a", b], "output": f"a{b}", "cpu": 4, **operator}
                for b in names
            ],
        }
    )


def run(asked, nodes=100, **weights):
    return place_all(Layout(asked), range(len(asked.operators)), (), Weights(**weights), nodes)


def test_load_is_even_if_that_is_what_counts():
    assert sorted(run(problem(), network=0.0).values()) == [0, 0, 1, 1]


def test_traffic_is_least_if_that_is_what_counts():
    """Two joins at h0 fetch 20 bps, at h1 they would fetch 30; three fetch 30 anywhere."""
    assert set(run(problem(joins=2), balance=0.0).values()) == {0}


def test_cpu_of_every_host_holds():
    assert sorted(run(problem(cpu=8.0), balance=0.0).values()) == [0, 0, 1, 1]
    assert run(problem(cpu=7.9)) is None


@pytest.mark.parametrize("limits", [{"in_bps": 29.0}, {"out_bps": 29.0}])
def test_bandwidth_holds(limits):
    """Nobody can get a: all joins run at h0, which takes two of the b's."""
    assert set(run(problem(joins=2, **limits)).values()) == {0}
    assert run(problem(joins=3, **limits)) is None


def test_a_pin_holds():
    assert set(run(problem(joins=2, pinned="h1")).values()) == {1}


def test_what_runs_stays_and_counts():
    asked = problem(cpu=8.0, joins=3)
    layout = Layout(asked)
    layout.put(0, 0)
    layout.put(1, 0)
    assert place_all(layout, [2], (), Weights(), 100) == {2: 1}


def test_operators_that_feed_each_other_stay_together_if_traffic_counts():
    document = {
        "hosts": [{"name": h, "cpu": 4, "out_bps": 10} for h in ("h0", "h1")],
        "streams": [
            {"name": "a", "rate_bps": 1, "home": "h0"},
            {"name": "m", "rate_bps": 6},
            {"name": "n", "rate_bps": 1},
        ],
        "operators": [
            {"name": "m", "inputs": ["a"], "output": "m", "cpu": 2},
            {"name": "n", "inputs": ["m"], "output": "n", "cpu": 2},
        ],
    }
    together = run(problem_of(document), balance=0.1)
    assert together[0] == together[1]
    apart = run(problem_of(document), balance=10.0)
    assert apart[0] != apart[1]


def test_without_work_nothing_is_found():
    assert run(problem(), nodes=0) is None
