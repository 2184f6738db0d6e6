"""Put and get with a rule dropped is caught by its scenario."""

import pytest
from tests.sim.scenarios.swarm import is_caught

from thalweg.overlay.chord.protocol import Chord
from thalweg.overlay.dht.messages import PutDone
from thalweg.overlay.dht.protocol import Dht
from thalweg.overlay.membership import Membership
from thalweg.overlay.protocol import Deliver
from thalweg.overlay.stack import Stack
from thalweg.sim.scenarios.chord import SETTINGS
from thalweg.sim.scenarios.dht import DhtScenario

ENOUGH_SEEDS = range(40)


class NeverTends(Dht):
    """Copies stay where they were when the ring changes."""

    def _tend(self):
        return []


class KeepsStrays(Dht):
    def _stray(self, key, owners):
        return []


class DropsStraysUnseen(Dht):
    """What is not ours is thrown away before its owners have it."""

    def _stray(self, key, owners):
        effects = super()._stray(key, owners)
        if self._strays.pop(key, None) is not None:
            del self.items[key]
        return effects


class AcknowledgesBeforeWriting(Dht):
    def _complete(self, operation):
        if operation.value is not None and not operation.writing:
            return [Deliver(PutDone(operation.tag))]
        return super()._complete(operation)


class ConfusesKeys(Dht):
    def _keep(self, key, item):
        other = next(iter(self.items), key)
        return super()._keep(other, item)


@pytest.mark.parametrize(
    "broken",
    [NeverTends, KeepsStrays, DropsStraysUnseen, AcknowledgesBeforeWriting, ConfusesKeys],
)
def test_a_dropped_rule_is_caught(broken):
    class Mutant(DhtScenario):
        def build(self, address):
            membership = Membership()
            chord = Chord(membership, SETTINGS)
            return Stack([membership, chord, broken(chord)])

    assert is_caught(Mutant, ENOUGH_SEEDS)
