"""What nodes tell, when they tell it, and what a node makes of it."""

import msgspec
import numpy as np
import pytest

from thalweg.overlay.trees.demand import Labelled, Nested
from thalweg.overlay.trees.messages import Report
from thalweg.overlay.trees.reporting import as_view, differs
from thalweg.overlay.trees.settings import TreeTimes
from thalweg.overlay.trees.transformations.choice import best

PLAIN = Report(
    weight=1.0,
    below=0.0,
    own=(0,),
    classes=(0,),
    children=0,
    sends=0.0,
    filter_us=5_000.0,
    send_us=1_000.0,
    other_busy=0.0,
    other_rate=0.0,
    other_below=0.0,
    delays_us=(("p", 10_000),),
)


def told(**changes):
    return msgspec.structs.replace(PLAIN, **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"weight": 1.2},
        {"weight": 1 / 1.2},
        {"filter_us": 6_100.0},
        {"classes": (0, 1)},
        {"children": 1},
        {"delays_us": (("p", 12_500),)},
        {"delays_us": (("p", 10_000), ("q", 1))},
        {"other_busy": 0.1},
        {"hop_us": 1.0},
    ],
)
def test_what_has_changed_by_a_fifth_is_told(changes):
    assert differs(PLAIN, told(**changes), 0.2)


@pytest.mark.parametrize(
    "changes", [{}, {"weight": 1.19}, {"filter_us": 4_300.0}, {"delays_us": (("p", 11_000),)}]
)
def test_what_has_changed_by_less_is_not(changes):
    assert not differs(PLAIN, told(**changes), 0.2)


def test_rates_of_unions_follow_from_labels():
    labels = {(0,): 1.0, (1,): 0.5, (0, 1): 2.0}
    assert Labelled().rate(labels, (0,)) == 3.0
    assert Labelled().rate(labels, (0, 1)) == 3.5
    assert Labelled().rate(labels, (7,)) == 0


def test_reports_become_a_view_that_decides():
    """A child is far from the home and near its sibling: it is demoted."""
    home = told(weight=2.0, below=2.0, own=(), children=2, sends=2.0, delays_us=())
    near = told(delays_us=(("k", 5_000), ("far", 1_000)))
    far = told(delays_us=(("k", 90_000), ("near", 1_000)))
    view = as_view(["k", "near", "far"], [home, near, far], [-1, 0, 0], {(0,): 1.0}, Labelled())
    choice = best(view)
    assert choice is not None
    assert choice.transformation == "demotion"
    assert choice.moves == ((2, 1),)


def test_classes_may_be_very_many():
    wide = told(classes=(0, 200), own=(200,))
    view = as_view(["k", "c"], [wide, wide], [-1, 0], {(200,): 2.0, (3,): 1.0}, Labelled())
    assert view.total.tolist() == [2.0, 2.0]
    assert np.isnan(view.delay_s[0, 1])


def test_of_rates_the_highest_stands_for_all():
    demand = Nested()
    assert demand.union([(3_000,), (), (1_500,)]) == (3_000,)
    assert demand.union([()]) == ()
    assert demand.rate({}, (3_000,)) == 3.0
    low, high = told(classes=(1_000,), own=(1_000,)), told(classes=(4_000,), own=(4_000,))
    view = as_view(["k", "l", "h"], [high, low, high], [-1, 0, 0], {}, demand)
    assert view.rates(view.join(view.demand[1:2], view.demand[2:3])).tolist() == [[4.0]]


def test_a_node_in_which_rows_wait_loses_its_children():
    """The same links everywhere; only what passes through the slow child waits."""
    every = tuple((a, 1_000) for a in ("k", "slow", "quick", "leaf"))
    home = told(weight=3.0, below=3.0, own=(), children=2, sends=0.002, delays_us=())
    quick, leaf = told(delays_us=every), told(delays_us=every)
    slow = told(weight=2.0, below=1.0, children=1, sends=0.001, delays_us=every, hop_us=500_000.0)
    names, labels = ["k", "slow", "quick", "leaf"], {(0,): 0.001}
    view = as_view(names, [home, slow, quick, leaf], [-1, 0, 0, 1], labels, Labelled())
    choice = best(view)
    assert choice is not None
    assert 3 in [move.node for move in choice.moves]
    assert choice.benefit > 0.4


def test_times_that_contradict_each_other_are_refused():
    with pytest.raises(ValueError, match="longer than a beat"):
        TreeTimes(lease_us=1)
    with pytest.raises(ValueError, match="outlast"):
        TreeTimes(hold_us=1)
