"""DHTJoin's Algorithm 10 as printed, as a rival to `overlay.gossip`; only experiments run it.

A round sends the sender's recent queries to a random finger. The receiver merges them, and sends
back their intersection with its own table (line 19), which after the merge is what it was sent: the
sender learns nothing from it. *As meant* by the text around it, it sends back which of its recent
queries the sender has not named. How many are recent is not said. T_gossip is the mean time between
queries at this node (4.4.1, steps 1 to 3); the first round is at the start.
"""

from __future__ import annotations

from collections import deque
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
from thalweg.overlay.query_spreading import Learn, Learned, QuerySpreading
from thalweg.overlay.query_table import Record
from thalweg.overlay.routing import Routing

RECENT = 10
_SECOND_US = 1_000_000
_UNKNOWN_US = 900 * _SECOND_US  # T_gossip before a second query has come: nothing is known


class Recent(Message, frozen=True):
    records: tuple[Record, ...]


class Missed(Message, frozen=True):
    records: tuple[Record, ...]


class PrintedGossip:
    name = "gossip"
    messages: ClassVar[tuple[type[Message], ...]] = (Recent, Missed)
    listens_to: ClassVar[tuple[str, ...]] = ("query-spreading",)

    def __init__(
        self,
        routing: Routing,
        spreading: QuerySpreading,
        fixed_us: int | None = None,
        *,
        as_meant: bool = False,
    ) -> None:
        self._routing = routing
        self._table = spreading.table
        self._fixed_us = fixed_us
        self._as_meant = as_meant
        self._generator = Generator(0)
        self._recent: deque[Record] = deque(maxlen=RECENT)
        self._came = 0
        self._first_us = self._last_us = 0

    @property
    def period_us(self) -> int:
        if self._fixed_us is not None:
            return self._fixed_us
        if self._came < 2:
            return _UNKNOWN_US
        return max(_SECOND_US, (self._last_us - self._first_us) // (self._came - 1))

    def step(self, now_us: int, event: Event) -> list[Effect]:
        match event:
            case Init(_, seed, _):
                self._generator = Generator(seed)
                return [SetTimer("round", self._generator.between(1, 10 * _SECOND_US))]
            case TimerFired():
                return self._round()
            case Heard(_, Learned(record, hops)):
                return self._learned(now_us, record, is_query=hops is not None)
            case Receive(sender, Recent(records)):
                return [*self._merge(records), *self._answer(sender, records)]
            case Receive(_, Missed(records)):
                return self._merge(records)
        return []

    def _round(self) -> list[Effect]:
        effects: list[Effect] = [SetTimer("round", self.period_us)]
        neighbours = self._routing.neighbours()
        if neighbours:
            other = self._generator.choice(neighbours)
            effects.append(Send(other, Recent(tuple(self._recent))))
        return effects

    def _learned(self, now_us: int, record: Record, *, is_query: bool) -> list[Effect]:
        self._recent.append(record)
        if is_query:  # along the tree: the node's own query arrival rate
            self._first_us = self._first_us if self._came else now_us
            self._came += 1
            self._last_us = now_us
        return [SetTimer("round", self.period_us)]

    def _merge(self, records: tuple[Record, ...]) -> list[Effect]:
        news = tuple(r for r in records if self._table.is_news(r))
        return [Tell("query-spreading", Learn(news))] if news else []

    def _answer(self, sender: Address, records: tuple[Record, ...]) -> list[Effect]:
        if not self._as_meant:
            return [Send(sender, Missed(records))] if records else []  # the intersection
        named = {r.id for r in records}
        missed = tuple(r for r in self._recent if r.id not in named)
        return [Send(sender, Missed(missed))] if missed else []
