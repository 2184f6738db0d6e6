"""Gossip with a rule dropped is caught by its scenario."""

import pytest
from tests.sim.scenarios.swarm import is_caught

from thalweg.overlay.gossip import Gossip, Pull
from thalweg.overlay.protocol import Receive, Send
from thalweg.overlay.query_spreading import QuerySpreading
from thalweg.overlay.query_table import QueryTable
from thalweg.sim.scenarios.gossip import TIMES, GossipScenario

ENOUGH_SEEDS = range(60)


class NeverAsks(Gossip):
    def step(self, now_us, event):
        effects = super().step(now_us, event)
        return [e for e in effects if not (isinstance(e, Send) and isinstance(e.message, Pull))]


class TellsOnlyRecent(Gossip):
    """Algorithm 10 as printed: an old gap is never repaired."""

    def _received(self, sender, message):
        effects = super()._received(sender, message)
        return [
            Send(e.to, type(e.message)(e.message.buckets, e.message.records[-1:]))
            if isinstance(e, Send)
            else e
            for e in effects
        ]


class KeepsToItself(Gossip):
    """Receives and never gives."""

    def step(self, now_us, event):
        if isinstance(event, Receive) and isinstance(event.message, Pull):
            return []
        return super().step(now_us, event)


class Forgetful(QueryTable):
    """Without tombstones: a dropped query comes back with the next digest."""

    def merge(self, record):
        known = self.get(record.id)
        if known is not None and known.dropped and not record.dropped:
            self._records[record.id] = record
            return True
        return super().merge(record)


class WithoutTombstones(QuerySpreading):
    def __init__(self, routing):
        super().__init__(routing)
        self.table = Forgetful()


@pytest.mark.parametrize(
    ("spreading", "gossip"),
    [
        (QuerySpreading, NeverAsks),
        (QuerySpreading, TellsOnlyRecent),
        (QuerySpreading, KeepsToItself),
        (WithoutTombstones, Gossip),
    ],
)
def test_a_dropped_rule_is_caught(spreading, gossip):
    class Mutant(GossipScenario):
        settle_within_us = 60_000_000

        def above(self, routing):
            below = spreading(routing)
            return [below, gossip(routing, below, TIMES)]

    assert is_caught(Mutant, ENOUGH_SEEDS)
