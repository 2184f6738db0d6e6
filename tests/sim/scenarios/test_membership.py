"""Membership with a rule dropped is caught by its scenario."""

import pytest
from tests.sim.scenarios.swarm import is_caught

from thalweg.overlay.membership import Membership
from thalweg.overlay.protocol import SetTimer
from thalweg.overlay.stack import Stack
from thalweg.overlay.view import LEFT, Word
from thalweg.sim.scenarios.membership import MembershipScenario

ENOUGH_SEEDS = range(60)


class AsksOnlyTheLiving(Membership):
    """Halves of a partition never find each other."""

    def _compare(self):
        if not self.view.up():
            return super()._compare()
        other = self._generator.choice(self.view.up())
        kept = [e for e in super()._compare() if isinstance(e, SetTimer)]
        return [*kept, *self._probe(other)]


class NeverObjects(Membership):
    """A false accusation stands."""

    def _object_to(self, word):
        return []


class NeverGivesUp(Membership):
    """Suspects stay suspects."""

    def _take(self, words):
        return [e for e in super()._take(words) if not isinstance(e, SetTimer)]


class ForgetsIncarnations(Membership):
    """A restart looks like the life before, which was already given up."""

    def _init(self, address, seed, own, members):
        effects = super()._init(address, seed, None, members)
        self._object_to = lambda word: []
        return effects


class TakesSilenceForLeaving(Membership):
    def _suspect(self, token):
        address = self._probed[token]
        super()._suspect(token)
        return self._take([Word(address, self.view.words[address].incarnation, LEFT)])


@pytest.mark.parametrize(
    "broken",
    [AsksOnlyTheLiving, NeverObjects, NeverGivesUp, ForgetsIncarnations, TakesSilenceForLeaving],
)
def test_a_dropped_rule_is_caught(broken):
    class Mutant(MembershipScenario):
        def build(self, address):
            return Stack([broken()])

    assert is_caught(Mutant, ENOUGH_SEEDS)
