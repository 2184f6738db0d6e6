"""Gathering: every tuple goes to one node, which joins it. The yardstick of DHTJoin and RJoin.

A message for each tuple that some query reads, straight there, and none for anything else: no way
to spread the work needs fewer. It gives no room: one node keeps all windows and does all joins.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from thalweg.overlay.p2p.dataflow import Dataflow, Stem
from thalweg.overlay.p2p.mjoin import probe
from thalweg.overlay.p2p.query import JoinQuery
from thalweg.overlay.p2p.stems import Stems
from thalweg.overlay.p2p.tuples import Parts, Tup
from thalweg.overlay.protocol import Address, Call, Deliver, Effect, Event, Message, Receive, Send


class Gather(Message, frozen=True):
    tup: Tup


class Gathered(Message, frozen=True):
    """To who asked."""

    query: str
    parts: Parts


class GatherTuple(msgspec.Struct, frozen=True):
    tup: Tup


class GatherQuery(msgspec.Struct, frozen=True):
    query: JoinQuery


class GatheredResult(msgspec.Struct, frozen=True):
    query: str
    parts: Parts


class Gathering:
    """Queries are told to all nodes by the caller: only the centre and the filters need them."""

    name = "gathering"
    messages: ClassVar[tuple[type[Message], ...]] = (Gather, Gathered)
    listens_to: ClassVar[tuple[str, ...]] = ()

    def __init__(self, centre: Address, slack: int = 2_000) -> None:
        self._centre = centre
        self._slack = slack
        self._flow = Dataflow()
        self.stems = Stems()

    def step(self, now_us: int, event: Event) -> list[Effect]:
        match event:
            case Call(GatherQuery(query)):
                self._flow = Dataflow([*self._flow.queries.values(), query])
            case Call(GatherTuple(tup)):
                return [Send(self._centre, Gather(tup))] if self._flow.stems_for(tup) else []
            case Receive(_, Gather(tup)):
                return self._join(tup)
            case Receive(_, Gathered(query, parts)):
                return [Deliver(GatheredResult(query, parts))]
        return []

    def _result(self, query: JoinQuery, parts: Parts) -> Effect:
        if query.asker == self._centre:
            return Deliver(GatheredResult(query.id, parts))
        return Send(query.asker, Gathered(query.id, parts))

    def _join(self, tup: Tup) -> list[Effect]:
        effects: list[Effect] = []
        to_do: list[tuple[Stem, Parts]] = [(s, (tup,)) for s in self._flow.stems_for(tup)]
        while to_do:
            stem, parts = to_do.pop()
            self.stems.purge(tup.ts - self._slack, (stem.name,))
            self.stems.add(stem.name, stem.key(parts), parts, stem.end(parts))
            for operator, port in stem.readers:
                for output in probe(operator, port, parts, stem.key(parts), self.stems.get):
                    asked = (self._flow.queries[q] for q in operator.queries)
                    effects += [self._result(q, output) for q in asked]
                    to_do += [(s, output) for s in operator.consumers if s.key(output) is not None]
        return effects
