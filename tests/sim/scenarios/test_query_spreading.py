"""QuerySpreading with a rule dropped is caught by its scenario."""

import pytest
from tests.sim.scenarios.swarm import is_caught

from thalweg.overlay.chord.protocol import Chord
from thalweg.overlay.membership import Membership
from thalweg.overlay.prefix.protocol import Prefix
from thalweg.overlay.query_spreading import QuerySpreading
from thalweg.overlay.stack import Stack
from thalweg.sim.scenarios.query_spreading import QuerySpreadingScenario

ENOUGH_SEEDS = range(20)


class ForwardsEveryCopy(QuerySpreading):
    def _spread_on(self, sender, message):
        self._forwarded.clear()
        return super()._spread_on(sender, message)


class ForgetsTheLimit(QuerySpreading):
    def _send_parts(self, record, scope, hops):
        return super()._send_parts(record, None, hops)


class SkipsTheLastPart(QuerySpreading):
    def _send_parts(self, record, scope, hops):
        return super()._send_parts(record, scope, hops)[:-1]


@pytest.mark.parametrize("overlay", [Chord, Prefix])
@pytest.mark.parametrize("broken", [ForwardsEveryCopy, ForgetsTheLimit, SkipsTheLastPart])
def test_a_dropped_rule_is_caught(broken, overlay):
    class Mutant(QuerySpreadingScenario):
        def __init__(self, options, generator):
            super().__init__(options, generator)
            self.on_chord = overlay is Chord

        def build(self, address):
            membership = Membership()
            routing = overlay(membership)
            return Stack([membership, routing, broken(routing)])

    assert is_caught(Mutant, ENOUGH_SEEDS)
