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
much room there is), Returned (virtual tuples); Start, Runs, Awaited and Ends (see `lifecycle`).
Requests: Submit, Took, Demand and Drop at the sink, Feed and End at homes, SinkGone anywhere; Run
where nobody else tells a site to take part. It delivers Accepted at homes, Final at the sink, Began
and Ended at all sites.

Promise: what the sink says of instants below its frontier is the reference's changelog, once and in
order, through loss, duplication, reordering, crashes and restarts with the disk; frontiers move on
while all sites of the query can reach each other. A site that loses its disk is not covered: its
rows have no second copy here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from thalweg.adapt.swap import giving, lifecycle, taking
from thalweg.adapt.swap.messages import (
    MESSAGES,
    Awaited,
    Batch,
    Began,
    Demand,
    Drop,
    End,
    Ended,
    Ends,
    Feed,
    NotRunning,
    Returned,
    Run,
    Runs,
    SinkGone,
    Start,
    Submit,
    Taken,
    Took,
)
from thalweg.adapt.swap.query import SwapQuery
from thalweg.adapt.swap.settings import SwapSettings
from thalweg.adapt.swap.state import SiteState, encode, restored_query
from thalweg.overlay.generator import Generator, seed_of
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
        match request:
            case Run(query) | Submit(query):
                return self._begin(query, spreads=isinstance(request, Submit))
            case SinkGone(sink):
                gone = [s for s in self.queries.values() if s.query.sink == sink]
                return [effect for state in gone for effect in self._end(state)]
            case Feed() | End() | Took() | Demand() | Drop():
                state = self.queries.get(request.query)
                if state is None:
                    return [Deliver(NotRunning(request.query))]
            case _:
                raise TypeError(f"swap can't {request!r}")
        match request:
            case Feed():
                taking.feed(state, request)
            case End():
                taking.end(state, request)
            case Took():
                lifecycle.take(state, request)
            case Demand(_, upto):
                state.lifecycle.demanded = max(state.lifecycle.demanded, upto)
            case Drop():
                return self._end(state)
        return _end_step(state)

    def _begin(self, query: SwapQuery, *, spreads: bool) -> list[Effect]:
        known = self.queries.get(query.id)
        if known is not None:
            if known.query != query:
                raise ValueError(f"another query {query.id} runs here already")
            return []
        state = self._take_part(query)
        if spreads:
            lifecycle.beat(state)
        written = Persist(f"{query.id}/query", encode(query))
        return [written, Deliver(Began(query.id)), *_end_step(state)]

    def _end(self, state: SiteState) -> list[Effect]:
        del self.queries[state.query.id]
        state.effects.clear()
        lifecycle.end(state)
        return [*state.effects, Deliver(Ended(state.query.id))]

    def _received(self, sender: Address, message: Message) -> list[Effect]:
        if isinstance(message, Start):
            return [*self._begin(message.query, spreads=False), *self._tell(message.query.id)]
        assert isinstance(message, Batch | Taken | Returned | Runs | Awaited | Ends)
        state = self.queries.get(message.query)
        if state is None:
            # Not asked to run it yet: who sent this will send it again. Or not any more.
            return [Send(sender, Ends(message.query))] if isinstance(message, Runs) else []
        if isinstance(message, Ends):
            return self._end(state) if sender == state.query.sink else []
        if isinstance(message, Runs):
            lifecycle.runs(state, sender, message.fed)
            return _end_step(state)
        if isinstance(message, Awaited):
            lifecycle.awaited(state, message.upto)
            return []
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

    def _tell(self, query: str) -> list[Effect]:
        """The sink, that it runs here."""
        state = self.queries[query]
        lifecycle.beat(state)
        return _end_step(state)

    def _beat(self) -> list[Effect]:
        effects: list[Effect] = [SetTimer("beat", self._settings.beat_us)]
        for state in self.queries.values():
            giving.dispatch(state)
            giving.send_again(state)
            if self._settings.managed:
                lifecycle.beat(state)
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
