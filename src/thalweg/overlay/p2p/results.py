"""Results at who asked: combinations as they come, or instants once they are final.

Source: DHTJoin 4.3.3 (results go straight to the asker). Beyond it: an instant is final when the
frontiers of all of the query's streams have passed it (`streams`); sources pass an instant only
when all that they sent before it has been acknowledged, and owners acknowledge after the asker
has. So what the asker has below the frontier is all there is. A combination counts from the
query's horizon on, and once, however often it comes.

Where the application asks for it (`keeps`), what was said stays on disk until it has taken it.

A source that is given up (`streams`) is in no result from the next instant on, and the application
is told which source of which stream, and from when on.

Invariants: no instant is said twice or changed later; what was acknowledged is on disk.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from thalweg.overlay.p2p.pending import Pending
from thalweg.overlay.p2p.query import JoinQuery, from_text, to_text
from thalweg.overlay.p2p.register import Loss
from thalweg.overlay.p2p.result_messages import (
    MESSAGES,
    Combination,
    DropJoin,
    Final,
    Got,
    Rows,
    RowsDone,
    SendRows,
    SourceLost,
    SubmitJoin,
    Took,
)
from thalweg.overlay.p2p.stream_messages import AskStream, Status, Watch
from thalweg.overlay.p2p.tuples import Id, Parts, Tup, ids_of
from thalweg.overlay.protocol import (
    Address,
    Call,
    Deliver,
    Effect,
    Event,
    Heard,
    Init,
    Message,
    Persist,
    Receive,
    Send,
    SetTimer,
    Tell,
    TimerFired,
)
from thalweg.overlay.query_spreading import Drop, Submit
from thalweg.plan.windows import FOREVER

_encode = msgspec.msgpack.Encoder().encode
_decode_parts = msgspec.msgpack.Decoder(tuple[Tup, ...]).decode
_decode_final = msgspec.msgpack.Decoder(Final).decode


class Asked(msgspec.Struct, frozen=True):
    """What survives a restart, beside the combinations."""

    text: str
    said: int
    found: int = 0
    stand_for: float = 0.0
    lost: dict[str, SourceLost] = {}


@dataclass(slots=True)
class OpenQuery:
    query: JoinQuery
    pending: Pending
    said: int = 0  # all instants below it
    untaken: list[Final] = field(default_factory=list)  # with changes that the application lacks
    horizons: dict[str, int] = field(default_factory=dict)  # by stream, as decided
    frontiers: dict[str, int] = field(default_factory=dict)
    found: int = 0  # combinations that were said, or will be
    stand_for: float = 0.0  # so many there would be, had memory room for all: an estimate
    news: tuple[int, float] = (0, 0.0)  # of both, since the last said instant
    lost: dict[str, SourceLost] = field(default_factory=dict)  # by source

    @property
    def horizon(self) -> int | None:
        """The greatest instant from which a source indexes for it; None: not decided yet."""
        if len(self.horizons) < len(self.query.streams):
            return None
        return max(self.horizons.values())

    @property
    def completeness(self) -> float:
        """An estimate: the share of all results that memory had room for."""
        return self.found / self.stand_for if self.stand_for else 1.0

    def count(self, share: float) -> None:
        self.found += 1
        self.stand_for += 1 / share
        self.news = (self.news[0] + 1, self.news[1] + 1 / share)

    def share_of_news(self) -> float:
        """Of those since this was last asked. Each of them stands for 1/share of all."""
        (found, stand_for), self.news = self.news, (0, 0.0)
        return found / stand_for if found else 1.0


class Results:
    name = "p2p-results"
    messages = MESSAGES
    listens_to = ("p2p-streams",)

    def __init__(
        self,
        watch_every_us: int = 2_000_000,
        retry_every_us: int = 1_000_000,
        *,
        keeps: bool = False,
    ) -> None:
        if min(watch_every_us, retry_every_us) < 1:
            raise ValueError("periods must be above 0")
        self._keeps = keeps
        self.standing: dict[str, OpenQuery] = {}
        self._watch_every_us = watch_every_us
        self._retry_every_us = retry_every_us
        self._sending: dict[int, tuple[SendRows, int]] = {}  # and when it was sent
        self._seen: dict[str, dict[tuple[Id, ...], int]] = {}  # of eager queries -> its end
        self._address = ""

    def step(self, now_us: int, event: Event) -> list[Effect]:
        if type(event) is Receive:
            return self._receive(event.sender, event.message)
        match event:
            case Call(SendRows() as rows):
                return self._send(now_us, rows)
            case Heard(_, Status() as status):
                return self._told(status)
            case TimerFired("watch"):
                return [SetTimer("watch", self._watch_every_us), *self._watch()]
            case TimerFired("retry"):
                return [SetTimer("retry", self._retry_every_us), *self._retry(now_us)]
            case Call(SubmitJoin(query)):
                return self._submit(query)
            case Call(DropJoin(query)):
                return self._drop(query)
            case Call(Took(query, upto)):
                return self._took(query, upto)
            case Init(address, _, persisted):
                return self._init(address, persisted)
        return []

    def _init(self, address: Address, persisted: Mapping[str, bytes]) -> list[Effect]:
        self._address = address
        for key, value in persisted.items():
            if key.startswith("q:"):
                asked = msgspec.msgpack.decode(value, type=Asked)
                query = from_text(asked.text)
                self.standing[query.id] = OpenQuery(
                    query,
                    Pending(query),
                    asked.said,
                    found=asked.found,
                    stand_for=asked.stand_for,
                    lost=dict(asked.lost),
                )
        for key, value in persisted.items():
            if key.startswith("c:"):
                standing = self.standing[key.split(":", 2)[1]]
                standing.pending.add(_decode_parts(value), standing.said)
            elif key.startswith("f:"):
                final = _decode_final(value)
                self.standing[final.query].untaken.append(final)
        for standing in self.standing.values():
            standing.untaken.sort(key=lambda f: f.upto)
        return [
            SetTimer("watch", self._watch_every_us),
            SetTimer("retry", self._retry_every_us),
        ]

    def _submit(self, query: JoinQuery) -> list[Effect]:
        self.standing[query.id] = OpenQuery(query, Pending(query))
        text = to_text(query)
        persist = Persist(f"q:{query.id}", _encode(Asked(text, 0)))
        return [persist, Tell("query-spreading", Submit(query.id, text))]

    def _drop(self, query_id: str) -> list[Effect]:
        standing = self.standing.pop(query_id, None)
        if standing is None:
            return []
        self._seen.pop(query_id, None)
        keys = [f"q:{query_id}", *(_key(query_id, ids) for ids in standing.pending)]
        keys += [_final_key(f) for f in standing.untaken]
        return [*(Persist(key, None) for key in keys), Tell("query-spreading", Drop(query_id))]

    def _took(self, query_id: str, upto: int) -> list[Effect]:
        standing = self.standing.get(query_id)
        if standing is None:
            return []
        taken = [f for f in standing.untaken if f.upto <= upto]
        standing.untaken = [f for f in standing.untaken if f.upto > upto]
        return [Persist(_final_key(f), None) for f in taken]

    # --- on the way ---

    def _send(self, now_us: int, rows: SendRows) -> list[Effect]:
        if rows.asker == self._address:
            return [*self._take(rows.query, rows.rows, rows.share), Deliver(RowsDone(rows.token))]
        self._sending[rows.token] = (rows, now_us)
        return [Send(rows.asker, Rows(rows.token, rows.query, rows.rows, rows.share))]

    def _retry(self, now_us: int) -> list[Effect]:
        effects: list[Effect] = []
        for token, (rows, sent_us) in self._sending.items():
            if now_us - sent_us >= self._retry_every_us:
                self._sending[token] = (rows, now_us)
                effects.append(Send(rows.asker, Rows(token, rows.query, rows.rows, rows.share)))
        return effects

    def _receive(self, sender: Address, message: Message) -> list[Effect]:
        if type(message) is Rows:
            return [
                *self._take(message.query, message.rows, message.share),
                Send(sender, Got(message.token)),
            ]
        assert isinstance(message, Got)
        known = self._sending.pop(message.token, None)
        return [] if known is None else [Deliver(RowsDone(message.token))]

    # --- at the asker ---

    def _take(self, query_id: str, rows: tuple[Parts, ...], share: float) -> list[Effect]:
        standing = self.standing.get(query_id)
        if standing is None:
            return []  # dropped
        if standing.query.eager:
            return self._take_eagerly(standing, rows, share)
        effects: list[Effect] = []
        for parts in rows:
            ids = ids_of(parts)
            if any(p.source in standing.lost for p in parts):
                continue  # what was not said before the source was lost never will be
            if ids not in standing.pending and max(p.ts for p in parts) >= standing.said:
                standing.pending.add(parts, standing.said)
                standing.count(share)
                effects.append(Persist(_key(query_id, ids), _encode(parts)))
        return effects

    def _take_eagerly(
        self, standing: OpenQuery, rows: tuple[Parts, ...], share: float
    ) -> list[Effect]:
        query = standing.query
        seen = self._seen.setdefault(query.id, {})
        effects: list[Effect] = []
        for parts in rows:
            ids = ids_of(parts)
            if ids not in seen:
                seen[ids] = query.interval(parts)[1]
                standing.count(share)
                effects.append(Deliver(Combination(query.id, parts, query.row(parts), share)))
        if len(seen) > 100_000:
            newest = max(seen.values())
            old = newest - 4 * query.longest_window
            self._seen[query.id] = {i: end for i, end in seen.items() if end >= old}
        return effects

    def _watch(self) -> list[Effect]:
        return [
            Tell("p2p-streams", AskStream(stream, Watch(s.query.id, s.said, _wanted(s))))
            for s in self.standing.values()
            if not s.query.eager
            for stream in s.query.streams
        ]

    def _told(self, status: Status) -> list[Effect]:
        effects: list[Effect] = []
        for standing in self.standing.values():
            query = standing.query
            if query.eager or status.stream not in query.streams:
                continue
            for source, loss in (status.lost or {}).items():
                if source not in standing.lost:
                    effects += self._lose(standing, status.stream, source, loss)
            if query.id in status.horizons:
                standing.horizons[status.stream] = status.horizons[query.id]
            known = standing.frontiers.get(status.stream, 0)
            standing.frontiers[status.stream] = max(known, status.frontier)
            effects += self._say(standing)
        return effects

    def _lose(self, standing: OpenQuery, stream: str, source: str, loss: Loss) -> list[Effect]:
        """From the next instant on the query does without a source. All that was said before is
        complete: the frontier that let it be said is older than the loss."""
        query_id = standing.query.id
        since = standing.said if query_id in loss.queries else None
        told = SourceLost(query_id, stream, source, loss.address, since)
        standing.lost[source] = told
        gone = standing.pending.leave_out(source, standing.said)
        effects: list[Effect] = [Persist(_key(query_id, ids), None) for ids in gone]
        effects.append(self._persist(standing))
        return effects if since is None else [*effects, Deliver(told)]

    def _persist(self, standing: OpenQuery) -> Effect:
        text = to_text(standing.query)
        found, stand_for = standing.found, standing.stand_for
        asked = Asked(text, standing.said, found, stand_for, standing.lost)
        return Persist(f"q:{standing.query.id}", _encode(asked))

    def _say(self, standing: OpenQuery) -> list[Effect]:
        """All instants that have become final."""
        horizon = standing.horizon
        streams = standing.query.streams
        if horizon is None or len(standing.frontiers) < len(streams):
            return []
        upto = min(standing.frontiers[s] for s in streams)
        since = max(standing.said, horizon)
        if upto <= since:
            return []
        changes, over = standing.pending.changes(horizon, since, upto)
        query_id = standing.query.id
        effects: list[Effect] = [Persist(_key(query_id, ids), None) for ids in over]
        standing.said = upto
        share = standing.share_of_news()
        effects.append(self._persist(standing))
        final = Final(query_id, since, upto, changes, share)
        if self._keeps and changes:
            standing.untaken.append(final)
            effects.append(Persist(_final_key(final), _encode(final)))
        return [*effects, Deliver(final)]


def _wanted(standing: OpenQuery) -> int:
    """How far the furthest of its streams is that goes on."""
    return max([f for f in standing.frontiers.values() if f < FOREVER], default=0)


def _key(query: str, ids: tuple[Id, ...]) -> str:
    return f"c:{query}:" + ",".join(f"{s}/{n}" for s, n in ids)


def _final_key(final: Final) -> str:
    return f"f:{final.query}:{final.upto}"
