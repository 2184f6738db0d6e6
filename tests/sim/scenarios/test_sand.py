"""SAND's placement with a rule dropped is caught by its scenario."""

import pytest
from tests.sim.scenarios.swarm import is_caught

from thalweg.overlay.sand.coordinating import Coordinating
from thalweg.overlay.sand.duty import Duty
from thalweg.overlay.sand.hosting import Hosting
from thalweg.overlay.sand.messages import OperatorRemapped
from thalweg.overlay.sand.post import Post
from thalweg.overlay.sand.protocol import Sand
from thalweg.overlay.sand.proxying import Proxying
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

    def _place(self, now_us, duty):
        return super()._place(min(now_us, duty.placed_since_us), duty)


class NeverMoves(Coordinating):
    """Backtracked placement is left out: children stay where they were placed first."""

    def remapped(self, now_us, message):
        duty = self.duties.get((message.query, message.zone))
        here = message.location if duty is None or duty.plan is None else duty.plan.best
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
        for duty in self.duties.values():
            duty.expire(now_us)
        return [e for duty in self.duties.values() for e in self._settle(now_us, duty)]


class KeepsZones(Coordinating):
    """Who was a coordinator stays one."""

    def tend(self, now_us):
        for duty in self.duties.values():
            duty.until_us = now_us + SECOND_US
        return super().tend(now_us)


class SendsNothingOn(Post):
    """Whoever gets a letter takes it for its own."""

    def forward(self, message):
        return super().forward(message) if message.hops == 0 else []


class BelievesOldWords(Duty):
    def expire(self, now_us):
        pass


def mutant(broken):
    class Mutated(Sand):
        def __init__(self, routing, members, settings):
            super().__init__(routing, members, settings)
            if issubclass(broken, Post):
                self._post.__class__ = broken
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
    monkeypatch.setattr(Duty, "expire", BelievesOldWords.expire)
    assert is_caught(mutant(Coordinating), ENOUGH_SEEDS)
