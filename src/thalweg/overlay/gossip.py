"""Gossip repair: what spreading's trees left out comes round by pairs comparing their tables.

Source: DHTJoin (seed 003) 4.4.1, Algorithm 10, with corrections: the passive side sends back what
the *sender* lacks (the text intersects the two tables); tables are compared whole, by digests (the
text sends recent queries only, which never repairs an old gap); T_gossip is an inter-arrival time
(the text says rate), and an arriving query starts it anew.

Messages: Pull (the digest of a table), Push (the buckets in which the tables differ; the receiver
answers with what the sender lacks, if anything). Equal tables cost one message and no answer.

Who misses something finds out in two ways. Every Spread carries its sender's digest: when the next
query comes, a node whose table differs asks the one it came from; and what it then learns it passes
on to those below it in that query's tree, which have most likely missed it too. T_gossip is for
what no later query would reveal. It is twice the longest of the last inter-arrival times, within a
floor and a ceiling (which also stands while there are too few of them), and doubles with every
round in which nothing came, until the next query does. The plain mean, as printed, would fire for
every third query of a Poisson stream though nothing is amiss.

Promise: no query is invented, and none comes back from the dead. After healing, every live node has
every query that a live node held, within a few ceilings.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import ClassVar

from thalweg.overlay.generator import Generator
from thalweg.overlay.protocol import (
    Address,
    Effect,
    Event,
    Heard,
    Init,
    Message,
    Receive,
    Send,
    SetTimer,
    Tell,
    TimerFired,
)
from thalweg.overlay.query_spreading import Differs, Learn, Learned, QuerySpreading
from thalweg.overlay.query_table import Record
from thalweg.overlay.routing import Routing

_SECOND_US = 1_000_000
_REMEMBERED = 8  # inter-arrival times
_ENOUGH = 4  # of them, to call a silence long
_PATIENCE = 2  # times the longest


class Pull(Message, frozen=True):
    hashes: tuple[int, ...]


class Push(Message, frozen=True):
    buckets: tuple[int, ...]  # of which `records` are all that the sender has; () for an answer
    records: tuple[Record, ...]


@dataclass(frozen=True, slots=True)
class GossipTimes:
    floor_us: int = 20 * _SECOND_US
    ceiling_us: int = 900 * _SECOND_US
    settle_us: int = 5 * _SECOND_US  # how long a query is on its way; differences may pass by then
    fixed_us: int | None = None  # a constant T_gossip instead of the adaptive one

    def __post_init__(self) -> None:
        if not 0 < self.floor_us <= self.ceiling_us:
            raise ValueError(
                f"T_gossip lies between a floor above zero and a ceiling, not between "
                f"{self.floor_us} and {self.ceiling_us} µs"
            )
        if self.settle_us < 0 or (self.fixed_us is not None and self.fixed_us <= 0):
            raise ValueError("the times of gossip can't be negative, nor a fixed period zero")


class Gossip:
    name = "gossip"
    messages: ClassVar[tuple[type[Message], ...]] = (Pull, Push)
    listens_to: ClassVar[tuple[str, ...]] = ("query-spreading",)

    def __init__(
        self, routing: Routing, spreading: QuerySpreading, times: GossipTimes | None = None
    ) -> None:
        self._routing = routing
        self._spreading = spreading
        self._table = spreading.table
        self._times = times or GossipTimes()
        self._generator = Generator(0)
        self._last_arrival_us = 0  # or the start
        self._gaps_us: deque[int] = deque(maxlen=_REMEMBERED)
        self._idle_rounds = 0
        self._to_ask: Address | None = None

    @property
    def period_us(self) -> int:
        """The present T_gossip."""
        times = self._times
        if times.fixed_us is not None:
            return times.fixed_us
        if len(self._gaps_us) < _ENOUGH:
            return times.ceiling_us
        wanted_us = max(times.floor_us, _PATIENCE * max(self._gaps_us))
        return min(times.ceiling_us, wanted_us << min(self._idle_rounds, 32))

    def step(self, now_us: int, event: Event) -> list[Effect]:
        if isinstance(event, Heard):
            return self._heard(now_us, event.value)
        if isinstance(event, Receive):
            return self._received(event.sender, event.message)
        if isinstance(event, TimerFired):
            return self._round() if event.key == "round" else self._ask()
        if isinstance(event, Init):
            # A node that arrives has missed all that came before it; a moment later its overlay
            # knows some neighbours. Spread out, lest all of a cluster that starts ask at once.
            self._generator = Generator(event.seed)
            self._last_arrival_us = now_us
            soon_us = self._generator.between(1, max(1, 2 * self._times.settle_us))
            return [SetTimer("round", soon_us)]
        return []

    # --- the active side ---

    def _round(self) -> list[Effect]:
        self._idle_rounds += 1
        effects: list[Effect] = [SetTimer("round", self.period_us)]
        neighbours = self._routing.neighbours()
        if neighbours:
            effects.append(Send(self._generator.choice(neighbours), Pull(self._table.hashes)))
        return effects

    def _ask(self) -> list[Effect]:
        other, self._to_ask = self._to_ask, None
        return [Send(other, Pull(self._table.hashes))] if other is not None else []

    def _heard(self, now_us: int, value: object) -> list[Effect]:
        if isinstance(value, Differs):
            if self._to_ask is not None:
                return []
            self._to_ask = value.other
            return [SetTimer("ask", self._times.settle_us)]
        if isinstance(value, Learned):
            self._idle_rounds = 0
            if value.hops is not None:
                self._observe(now_us)
            return [SetTimer("round", self.period_us)]
        return []

    def _observe(self, now_us: int) -> None:
        """A query came along the tree: the inter-arrival times that are this node's own."""
        self._gaps_us.append(max(0, now_us - self._last_arrival_us))
        self._last_arrival_us = now_us

    # --- the passive side ---

    def _received(self, sender: Address, message: Message) -> list[Effect]:
        if isinstance(message, Pull):
            buckets = tuple(self._table.differing(message.hashes))
            if not buckets:
                return []
            return [Send(sender, Push(buckets, self._table.in_buckets(buckets)))]
        assert isinstance(message, Push)
        news = tuple(r for r in message.records if self._table.is_news(r))
        effects: list[Effect] = [Tell("query-spreading", Learn(news))] if news else []
        lacking = self._table.beyond(message.buckets, message.records)
        if lacking:
            effects.append(Send(sender, Push((), lacking)))
        if news:
            below = (a for a in self._spreading.below if a != sender)
            effects += [Send(a, Push((), news)) for a in below]
        return effects
