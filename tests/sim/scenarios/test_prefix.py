"""Prefix routing with a rule dropped is caught by its scenario."""

import pytest
from tests.sim.scenarios.swarm import is_caught

from thalweg.overlay.membership import Down, Membership
from thalweg.overlay.prefix.protocol import Prefix
from thalweg.overlay.protocol import Heard, TimerFired
from thalweg.overlay.stack import Stack
from thalweg.sim.scenarios.prefix import PrefixScenario

ENOUGH_SEEDS = range(60)


class KeepsTheDead(Prefix):
    def step(self, now_us, event):
        match event:
            case Heard(_, Down()) | TimerFired(("answer", _)):
                return []
        return super().step(now_us, event)


class TellsNobody(Prefix):
    """Newcomers are not passed on."""

    def _known_to(self, address):
        return ()

    def _greet_somebody(self, now_us):
        return []


class BelievesHearsay(Prefix):
    """Puts into its table whom it has only heard of."""

    def _heard_of(self, now_us, addresses):
        for address in addresses:
            if address != self.table.address:
                self.table.put(address, 0)
        return []


@pytest.mark.parametrize("broken", [KeepsTheDead, TellsNobody, BelievesHearsay])
def test_a_dropped_rule_is_caught(broken):
    class Mutant(PrefixScenario):
        settle_within_us = 40_000_000

        def build(self, address):
            membership = Membership()
            return Stack([membership, broken(membership)])

    assert is_caught(Mutant, ENOUGH_SEEDS)
