"""Query spreading: every node learns of every query, along trees that the overlay already has.

Source: DHTJoin (seed 003) 4.3.1, Algorithms 8 and 9 on Chord; 4.3.4 by rows on a prefix overlay.
Which nodes are sent to, and with which scope, is the overlay's affair (`Routing.parts`).

Messages: Spread, a record with the scope that its receiver has to look after.

Promise: where the routing tables are right and nothing fails, a record takes n − 1 messages and
reaches each node once, O(log n) hops deep. Whatever fails, no query is invented, and a dropped one
never comes back. What failures leave out, gossip repairs.

A Spread also carries a hash of its sender's whole table. A receiver whose own table differs says so
(Differs): one of the two has missed something, and gossip knows at once whom to ask.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from thalweg.overlay.protocol import (
    Address,
    Call,
    Deliver,
    Effect,
    Event,
    Init,
    Message,
    Persist,
    Receive,
    Send,
)
from thalweg.overlay.query_table import QueryTable, Record
from thalweg.overlay.routing import Routing, Scope

# --- messages ---


class Spread(Message, frozen=True):
    record: Record
    scope: Scope
    hops: int
    table_hash: int  # of the sender, with this record


# --- requests ---


class Submit(msgspec.Struct, frozen=True):
    """A new query; its id must be new in the whole network, for ever."""

    id: str
    text: str


class Drop(msgspec.Struct, frozen=True):
    id: str


class Learn(msgspec.Struct, frozen=True):
    """Records that came another way (gossip); they are not spread further."""

    records: tuple[Record, ...]


# --- deliveries ---


class Learned(msgspec.Struct, frozen=True):
    """News for this node; `hops` is None where it did not come along the tree."""

    record: Record
    hops: int | None


class Differs(msgspec.Struct, frozen=True):
    """This node and another one, which has just sent a record, don't know the same queries."""

    other: Address


class Refused(msgspec.Struct, frozen=True):
    id: str
    why: str


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Record).decode


class QuerySpreading:
    name = "query-spreading"
    messages: ClassVar[tuple[type[Message], ...]] = (Spread,)
    listens_to: ClassVar[tuple[str, ...]] = ()

    def __init__(self, routing: Routing) -> None:
        self.table = QueryTable()
        self.redundant = 0  # records that came along the tree a second time
        self.below: tuple[Address, ...] = ()  # whom the latest record was sent on to
        self._routing = routing
        self._forwarded: dict[tuple[str, bool], Scope | None] = {}  # the widest scope so far

    def step(self, now_us: int, event: Event) -> list[Effect]:
        if isinstance(event, Receive) and isinstance(event.message, Spread):
            return self._spread_on(event.sender, event.message)
        if isinstance(event, Call):
            return self._called(event.request)
        if isinstance(event, Init):
            for encoded in event.persisted.values():
                self.table.merge(_decode(encoded))
        return []

    def _called(self, request: object) -> list[Effect]:
        if isinstance(request, Learn):
            return [e for record in request.records for e in self._take_in(record, None)]
        if isinstance(request, Submit):
            if self.table.get(request.id) is not None:
                return [Deliver(Refused(request.id, "there is or was a query of this id"))]
            return self._originate(Record(request.id, request.text))
        if isinstance(request, Drop):
            known = self.table.get(request.id)
            if known is None or known.dropped:
                return [Deliver(Refused(request.id, "this node knows no such query"))]
            return self._originate(Record(request.id, "", dropped=True))
        raise TypeError(f"spreading can't {request!r}")

    def _originate(self, record: Record) -> list[Effect]:
        """Algorithm 8: the root of the tree sends to its whole routing table."""
        effects = self._take_in(record, 0)
        return effects + self._send_parts(record, None, 0)

    def _spread_on(self, sender: Address, message: Spread) -> list[Effect]:
        """Algorithm 9: look after the scope. Known records too: gossip may have been faster.

        Only a scope that was looked after before is not looked after again.
        """
        record = message.record
        effects = self._take_in(record, message.hops)
        if not effects:
            self.redundant += 1
        if self.table.hash != message.table_hash:
            effects.append(Deliver(Differs(sender)))
        key = (record.id, record.dropped)
        if key in self._forwarded and self._routing.covers(self._forwarded[key], message.scope):
            return effects
        return effects + self._send_parts(record, message.scope, message.hops)

    def _take_in(self, record: Record, hops: int | None) -> list[Effect]:
        if not self.table.merge(record):
            return []
        return [Persist(record.id, _encode(record)), Deliver(Learned(record, hops))]

    def _send_parts(self, record: Record, scope: Scope | None, hops: int) -> list[Effect]:
        self._forwarded[record.id, record.dropped] = scope
        parts = self._routing.parts(scope)
        self.below = tuple(first for first, _ in parts)
        table_hash = self.table.hash
        return [Send(a, Spread(record, part, hops + 1, table_hash)) for a, part in parts]
