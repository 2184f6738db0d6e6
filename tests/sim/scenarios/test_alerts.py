"""Alerts with a rule dropped are caught by their scenario."""

import pytest
from tests.sim.scenarios.swarm import is_caught

from thalweg.overlay.alerts.messages import Demand
from thalweg.overlay.alerts.protocol import Alerts
from thalweg.overlay.protocol import Send
from thalweg.overlay.stack import Stack
from thalweg.sim.scenarios.alerts import LEASE_US, AlertsScenario

ENOUGH_SEEDS = range(60)


class NeverForgets(Alerts):
    def _expire(self, now_us, running):
        pass


class NeverRenews(Alerts):
    """Speaks up when something changes, and takes it that it was heard."""

    def _renew(self, now_us):
        return [e for e in super()._renew(now_us) if not isinstance(e, Send)]


class AlwaysWants(Alerts):
    """Asks for all inputs, able or not."""

    def _settle(self, now_us, name):
        effects = super()._settle(now_us, name)
        for effect in effects:
            if isinstance(effect, Send) and isinstance(effect.message, Demand):
                effects[effects.index(effect)] = Send(
                    effect.to, Demand(effect.message.producer, name, True, now_us)
                )
        return effects

    def _renew(self, now_us):
        return [
            Send(e.to, Demand(e.message.producer, e.message.consumer, True, now_us))
            if isinstance(e, Send) and isinstance(e.message, Demand)
            else e
            for e in super()._renew(now_us)
        ]


class ForgetsToResume(Alerts):
    """Procedure 12 as printed: who has suspended does not hear of another query's wish."""

    def _demanded(self, now_us, consumer, message):
        running = self._running.get(message.producer)
        if running is None or not message.wanted:
            return super()._demanded(now_us, consumer, message)
        has_suspended = not running.leases and running.watchers
        return [] if has_suspended else super()._demanded(now_us, consumer, message)


@pytest.mark.parametrize("broken", [NeverForgets, NeverRenews, AlwaysWants, ForgetsToResume])
def test_a_dropped_rule_is_caught(broken):
    class Mutant(AlertsScenario):
        settle_within_us = 30_000_000

        def build(self, address):
            return Stack([broken(LEASE_US)])

    assert is_caught(Mutant, ENOUGH_SEEDS)
