"""SAND's placement with a rule dropped is caught by its scenario."""

import pytest
from tests.sim.scenarios.swarm import is_caught

from thalweg.overlay.sand.coordinating import Coordinating
from thalweg.overlay.sand.hosting import Hosting
from thalweg.overlay.sand.messages import OperatorRemapped
from thalweg.overlay.sand.protocol import Sand
from thalweg.overlay.sand.proxying import Proxying
from thalweg.overlay.sand.zone_mail import ZoneMail
from thalweg.overlay.sand.zone_state import ZoneState
from thalweg.sim.kernel import SECOND_US
from thalweg.sim.scenarios.sand import SandScenario

ENOUGH_SEEDS = range(60)


class AsksOnce(Proxying):
    def tend(self, now_us):
        return []


class NeverEndsLeases(Hosting):
    """What was mapped stays mapped, unless somebody says otherwise."""

    def tend(self, now_us):
        return []


class MapsForEver(Coordinating):
    """A zone's first placement does not wait for the zones above."""

    def _place(self, now_us, zone_state):
        return super()._place(min(now_us, zone_state.placed_since_us), zone_state)


class NeverMoves(Coordinating):
    """Backtracked placement is left out: children stay where they were placed first."""

    def remapped(self, now_us, message):
        zone_state = self.duties.get((message.query, message.zone))
        here = (
            message.location
            if zone_state is None or zone_state.plan is None
            else zone_state.plan.best
        )
        stays = OperatorRemapped(
            message.query,
            message.zone,
            message.origin,
            message.hops,
            here,
            message.taker,
            message.final,
            message.stamp_us,
        )
        return super().remapped(now_us, stays)


class TellsOnlyOnce(Coordinating):
    """What has not changed is not said again."""

    def tend(self, now_us):
        for zone_state in self.duties.values():
            zone_state.expire(now_us)
        return [e for zone_state in self.duties.values() for e in self._settle(now_us, zone_state)]


class KeepsZones(Coordinating):
    """Who was a coordinator stays one."""

    def tend(self, now_us):
        for zone_state in self.duties.values():
            zone_state.until_us = now_us + SECOND_US
        return super().tend(now_us)


class SendsNothingOn(ZoneMail):
    """Whoever gets a letter takes it for its own."""

    def forward(self, message):
        return super().forward(message) if message.hops == 0 else []


class BelievesOldWords(ZoneState):
    def expire(self, now_us):
        pass


def mutant(broken):
    class Mutated(Sand):
        def __init__(self, routing, members, settings):
            super().__init__(routing, members, settings)
            if issubclass(broken, ZoneMail):
                self._mail.__class__ = broken
            elif issubclass(broken, Proxying):
                self.proxying.__class__ = broken
            elif issubclass(broken, Hosting):
                self.hosting.__class__ = broken
            else:
                self.coordinating.__class__ = broken

    class Mutant(SandScenario):
        settle_within_us = 40 * SECOND_US

        def sand(self, chord, membership):
            return Mutated(chord, membership, super().sand(chord, membership).settings)

    return Mutant


@pytest.mark.parametrize(
    "broken",
    [
        AsksOnce,
        NeverEndsLeases,
        MapsForEver,
        NeverMoves,
        TellsOnlyOnce,
        KeepsZones,
        SendsNothingOn,
    ],
)
def test_a_dropped_rule_is_caught(broken):
    assert is_caught(mutant(broken), ENOUGH_SEEDS)


def test_words_that_outlive_their_speakers_are_caught(monkeypatch):
    monkeypatch.setattr(ZoneState, "expire", BelievesOldWords.expire)
    assert is_caught(mutant(Coordinating), ENOUGH_SEEDS)
