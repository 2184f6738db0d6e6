"""A coordinator tree with a rule dropped is caught by its scenario."""

import pytest
from tests.sim.scenarios.swarm import is_caught

from thalweg.overlay.coordinators.tree import CoordinatorTree
from thalweg.overlay.membership import Membership
from thalweg.overlay.stack import Stack
from thalweg.sim.scenarios.coordinators import CoordinatorsScenario

ENOUGH_SEEDS = range(40)


class RootsKeepToThemselves(CoordinatorTree):
    """Once in a tree, a node that lost its parent does not look for another tree."""

    def _become_root(self):
        self._look_for_others = lambda now_us: []
        return super()._become_root()


class NeverDoubtsItsParent(CoordinatorTree):
    def _watch_parent(self, now_us):
        return []


class NeverForgetsMembers(CoordinatorTree):
    def _expire(self, now_us):
        pass


class NeverSplits(CoordinatorTree):
    def _split(self, now_us, level):
        return []


class NeverMerges(CoordinatorTree):
    def _merge(self, now_us, level):
        return []


class NeverRecentres(CoordinatorTree):
    def _is_off_centre(self, cluster, centre):
        return False


class FollowsAnybody(CoordinatorTree):
    """Two leaders claim one member, and both get it."""

    def _heard_beat(self, now_us, sender, beat):
        if beat.level == self.place.height:
            self.place.parent = sender
        return super()._heard_beat(now_us, sender, beat)


@pytest.mark.parametrize(
    "broken",
    [
        RootsKeepToThemselves,
        NeverDoubtsItsParent,
        NeverForgetsMembers,
        NeverSplits,
        NeverMerges,
        NeverRecentres,
        FollowsAnybody,
    ],
)
def test_a_dropped_rule_is_caught(broken):
    class Mutant(CoordinatorsScenario):
        settle_within_us = 60_000_000

        def build(self, address):
            membership = Membership()
            return Stack([membership, broken(membership, self.settings)])

    assert is_caught(Mutant, ENOUGH_SEEDS)
