"""Chord with a rule dropped, or as first published, is caught by its scenario."""

import pytest
from tests.sim.scenarios.swarm import is_caught

from thalweg.overlay.chord.protocol import Chord
from thalweg.overlay.membership import Membership
from thalweg.overlay.stack import Stack
from thalweg.sim.scenarios.chord import SETTINGS, ChordScenario

ENOUGH_SEEDS = range(120)


class NeverLooksForItself(Chord):
    """Rings that were parted stay parted, where nobody hears of a nearer member."""

    def _find_self(self):
        return [] if self.joined else super()._find_self()

    def _greet(self, address):
        return [] if self.joined else super()._greet(address)


class JoinsWithOneSuccessor(Chord):
    """As published in 2001: the list comes later, and may be needed before."""

    def _found_self(self, before, owners):
        return super()._found_self(before, owners if self.joined else owners[:1])

    def _neighbours(self, of, message):
        first = self.table.successors[:1]
        effects = super()._neighbours(of, message)
        if of in first:
            self.table.successors = self.table.successors[:1]
        return effects


class TrustsPredecessorsUnseen(Chord):
    """As published in 2001: the successor's predecessor is adopted without asking it."""

    def _neighbours(self, of, message):
        between = message.predecessor
        effects = super()._neighbours(of, message)
        if self.joined and between is not None and self.table.is_nearer_successor(between):
            self.table.successors = (between,)
        return effects


class NeverRectifies(Chord):
    """A predecessor that is gone is never replaced."""

    def _notified(self, sender, successors):
        before = self.table.predecessor
        effects = super()._notified(sender, successors)
        self.table.predecessor = before or self.table.predecessor
        return effects


class AsksADeadSuccessorForEver(Chord):
    """Membership's word is not heard."""

    def _alive(self, addresses):
        return list(addresses)

    def step(self, now_us, event):
        deaf = type(event).__name__ == "Heard" and type(event.value).__name__ == "Down"
        return [] if deaf else super().step(now_us, event)

    def _stabilise(self):
        first = self.table.successors[:1]
        effects = super()._stabilise()
        self.table.follow((*first, *self.table.successors))
        return effects


@pytest.mark.parametrize(
    "broken",
    [
        NeverLooksForItself,
        JoinsWithOneSuccessor,
        TrustsPredecessorsUnseen,
        NeverRectifies,
        AsksADeadSuccessorForEver,
    ],
)
def test_a_dropped_rule_is_caught(broken):
    class Mutant(ChordScenario):
        def build(self, address):
            membership = Membership()
            return Stack([membership, broken(membership, SETTINGS)])

    assert is_caught(Mutant, ENOUGH_SEEDS)
