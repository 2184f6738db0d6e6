"""Who can still find whom."""

import pytest

from thalweg.overlay.membership import Join, Membership
from thalweg.overlay.stack import Stack
from thalweg.sim.scenarios.acquaintance import are_acquainted, findable
from thalweg.sim.world import World


@pytest.fixture
def world():
    """a and b know each other, and b knows c; d knows nobody."""
    made = World(lambda address: Stack([Membership()]))
    for address in "abcd":
        made.start(address)
    made.call("a", "membership", Join(("b",)))
    made.call("b", "membership", Join(("a", "c")))
    return made


def test_who_knows_nobody_and_is_unknown_can_not_be_found(world):
    assert [h.address for h in findable(world)] == ["a", "b", "c"]


def test_one_alone_needs_no_finding():
    world = World(lambda address: Stack([Membership()]))
    world.start("a")
    assert [h.address for h in findable(world)] == ["a"]


def test_a_host_that_others_know_each_other_through_can_not_be_spared(world):
    world.leave("d")
    assert are_acquainted(world, without=world.hosts["a"])
    assert not are_acquainted(world, without=world.hosts["b"])
