"""SwAP: joins across sites whose order is chosen batch by batch, exact to the row.

Source: COSMOS (seed 000) chapter 5. Its scheme is exact only where building and probing are one
step, and does not say who makes a pair; windows are left out. The rules here:

- A join edge belongs to one node of the plan (per bucket, where several sites run it in parallel).
- A row is stored where it arrives and numbered there. Two rows meet if the node has an edge
  between them and their intervals intersect; the later-numbered one makes the pair. What is made
  has one next site, written down before it is sent. So a combination has one derivation, whatever
  is chosen: of k rows each waits at one node, and k − 1 joins are left in a tree, so some join has
  all of its rows; and only the node that owns it can make it.
- A `-` follows its `+`: it ends what was made of the row, wherever that went.
- Frontiers are kept per (link, footprint), see `frontiers`; a row goes when all are past its end.
- Queues are bounded; room is told by the size of footprints, so that no two sites wait for each
  other (`giving.room_at`).

Messages: Batch (entries of a channel, and frontiers), Taken (its answer: what is on disk, and how
much room there is), Returned (virtual tuples). Requests: Run, Feed, End. It delivers Accepted at
homes, and Final at the sink.

Promise: what the sink says of instants below its frontier is the reference's changelog, once and in
order, through loss, duplication, reordering, crashes and restarts with the disk; frontiers move on
while all sites of the query can reach each other. A site that loses its disk is not covered: its
rows have no second copy here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from thalweg.adapt.swap import giving, taking
from thalweg.adapt.swap.messages import MESSAGES, Batch, End, Feed, Returned, Run, Taken
from thalweg.adapt.swap.query import SwapQuery
from thalweg.adapt.swap.settings import SwapSettings
from thalweg.adapt.swap.state import SiteState, encode, restored_query
from thalweg.overlay.generator import Generator, seed_of
from thalweg.overlay.protocol import (
    Address,
    Call,
    Effect,
    Event,
    Init,
    Message,
    Persist,
    Receive,
    SetTimer,
    TimerFired,
)
from thalweg.placement.swap.links import Kind


class Swap:
    name = "swap"
    messages: ClassVar[tuple[type[Message], ...]] = MESSAGES
    listens_to: ClassVar[tuple[str, ...]] = ()

    def __init__(self, settings: SwapSettings | None = None) -> None:
        self._settings = settings or SwapSettings()
        self.queries: dict[str, SiteState] = {}
        self._own: Address = ""
        self._seed = 0
        self._life = 0

    def step(self, now_us: int, event: Event) -> list[Effect]:
        if isinstance(event, Receive):
            return self._received(event.sender, event.message)
        if isinstance(event, Call):
            return self._called(event.request)
        if isinstance(event, TimerFired):
            return self._beat()
        if isinstance(event, Init):
            return self._init(event)
        return []

    def _init(self, event: Init) -> list[Effect]:
        self._own, self._seed = event.address, event.seed
        self._life = int(event.persisted.get("life", b"0")) + 1
        for key, value in event.persisted.items():
            if key.endswith("/query"):
                query = restored_query(value)
                self._take_part(query).restore(_under(query.id, event.persisted))
        beat = SetTimer("beat", 1 + self._settings.beat_us // 4)
        return [Persist("life", b"%d" % self._life), beat]

    def _take_part(self, query: SwapQuery) -> SiteState:
        generator = Generator(seed_of(self._seed, query.id))
        state = SiteState(query, self._own, self._settings, generator, self._life)
        self.queries[query.id] = state
        return state

    def _called(self, request: object) -> list[Effect]:
        if isinstance(request, Run):
            known = self.queries.get(request.query.id)
            if known is not None:
                if known.query != request.query:
                    raise ValueError(f"another query {request.query.id} runs here already")
                return []
            state = self._take_part(request.query)
            return [Persist(f"{request.query.id}/query", encode(request.query)), *_end_step(state)]
        if not isinstance(request, Feed | End):
            raise TypeError(f"swap can't {request!r}")
        known = self.queries.get(request.query)
        if known is None:
            raise ValueError(f"query {request.query} does not run here")
        if isinstance(request, Feed):
            taking.feed(known, request)
        else:
            taking.end(known, request)
        return _end_step(known)

    def _received(self, sender: Address, message: Message) -> list[Effect]:
        assert isinstance(message, Batch | Taken | Returned)
        state = self.queries.get(message.query)
        if state is None:
            return []  # not asked to run it yet: who sent this will send it again
        if isinstance(message, Batch):
            if taking.take(state, sender, message):
                giving.dispatch(state)
                giving.answer(state, sender, message.source, message.target)
            return _end_step(state)
        out = state.outs.get((message.source, message.target, sender))
        if out is None:
            return []
        if isinstance(message, Taken):
            gone, rows = out.take_answer(message.upto, message.room)
            for place in gone:
                state.erase(f"out/{out.key}/{place}")
            if gone:
                state.write(f"acked/{out.key}", out.acked)
            if rows and _is_choice(state, out.source, out.target):
                state.policies[out.source].consumed(out.target, rows)
        elif (message.life, message.rows) > out.returned:
            life, before = out.returned
            new = message.rows - (before if life == message.life else 0)
            out.returned = (message.life, message.rows)
            state.policies[out.source].returned(out.target, new)
        return _end_step(state)

    def _beat(self) -> list[Effect]:
        effects: list[Effect] = [SetTimer("beat", self._settings.beat_us)]
        for state in self.queries.values():
            giving.dispatch(state)
            giving.send_again(state)
            giving.flush(state, all_channels=True)
            state.moved = True  # a row may have waited until after its end: look again
            effects += _end_step(state)
        return effects


def _end_step(state: SiteState) -> list[Effect]:
    """What follows from whatever happened: rows and virtual tuples go, what is final is said."""
    giving.dispatch(state)
    giving.flush(state)
    giving.tell_room(state)
    giving.report(state)
    if state.moved:
        state.moved = False
        taking.purge(state)
        taking.say(state)
    effects, state.effects = state.effects, []
    return effects


def _is_choice(state: SiteState, source: int, target: int) -> bool:
    links = state.query.plan.links[source]
    return any(x.target == target and x.kind is Kind.RMO for x in links)


def _under(query: str, persisted: Mapping[str, bytes]) -> dict[str, bytes]:
    prefix = f"{query}/"
    kept = {k.removeprefix(prefix): v for k, v in persisted.items() if k.startswith(prefix)}
    kept.pop("query", None)
    return kept
