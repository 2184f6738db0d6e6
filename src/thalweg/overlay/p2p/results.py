"""Results at who asked: combinations as they come, or instants once they are final.

Source: DHTJoin 4.3.3 (results go straight to the asker). Beyond it: an instant is final when the
frontiers of all of the query's streams have passed it (`streams`); sources pass an instant only
when all that they sent before it has been acknowledged, and owners acknowledge after the asker
has. So what the asker has below the frontier is all there is. A combination counts from the
query's horizon on, and once, however often it comes.

Invariants: no instant is said twice or changed later; what was acknowledged is on disk.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from thalweg.overlay.p2p.query import JoinQuery, from_text, to_text
from thalweg.overlay.p2p.result_messages import (
    MESSAGES,
    Combination,
    Final,
    Got,
    Rows,
    RowsDone,
    SendRows,
    SubmitJoin,
)
from thalweg.overlay.p2p.stream_messages import AskStream, Status, Watch
from thalweg.overlay.p2p.tuples import Id, Parts, Tup, Value, ids_of
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
from thalweg.overlay.query_spreading import Submit

_encode = msgspec.msgpack.Encoder().encode
_decode_parts = msgspec.msgpack.Decoder(tuple[Tup, ...]).decode


class Asked(msgspec.Struct, frozen=True):
    """What survives a restart, beside the combinations."""

    text: str
    said: int


@dataclass(slots=True)
class OpenQuery:
    query: JoinQuery
    said: int = 0  # all instants below it
    pending: dict[tuple[Id, ...], Parts] = field(default_factory=dict)
    horizons: dict[str, int] = field(default_factory=dict)  # by stream, as decided
    frontiers: dict[str, int] = field(default_factory=dict)
    shares: list[float] = field(default_factory=list)  # of results since the last said instant

    @property
    def horizon(self) -> int | None:
        """The greatest instant from which a source indexes for it; None: not decided yet."""
        if len(self.horizons) < len(self.query.streams):
            return None
        return max(self.horizons.values())


class Results:
    name = "p2p-results"
    messages = MESSAGES
    listens_to = ("p2p-streams",)

    def __init__(self, watch_every_us: int = 2_000_000, retry_every_us: int = 1_000_000) -> None:
        if min(watch_every_us, retry_every_us) < 1:
            raise ValueError("periods must be above 0")
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
            case Init(address, _, persisted):
                return self._init(address, persisted)
        return []

    def _init(self, address: Address, persisted: Mapping[str, bytes]) -> list[Effect]:
        self._address = address
        for key, value in persisted.items():
            if key.startswith("q:"):
                asked = msgspec.msgpack.decode(value, type=Asked)
                query = from_text(asked.text)
                self.standing[query.id] = OpenQuery(query, asked.said)
        for key, value in persisted.items():
            if key.startswith("c:"):
                query_id = key.split(":", 2)[1]
                parts = _decode_parts(value)
                self.standing[query_id].pending[ids_of(parts)] = parts
        return [
            SetTimer("watch", self._watch_every_us),
            SetTimer("retry", self._retry_every_us),
        ]

    def _submit(self, query: JoinQuery) -> list[Effect]:
        self.standing[query.id] = OpenQuery(query)
        text = to_text(query)
        persist = Persist(f"q:{query.id}", _encode(Asked(text, 0)))
        return [persist, Tell("query-spreading", Submit(query.id, text))]

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
            return self._take_eagerly(standing.query, rows, share)
        effects: list[Effect] = []
        for parts in rows:
            ids = ids_of(parts)
            if ids not in standing.pending and max(p.ts for p in parts) >= standing.said:
                standing.pending[ids] = parts
                standing.shares.append(share)
                effects.append(Persist(_key(query_id, ids), _encode(parts)))
        return effects

    def _take_eagerly(
        self, query: JoinQuery, rows: tuple[Parts, ...], share: float
    ) -> list[Effect]:
        seen = self._seen.setdefault(query.id, {})
        effects: list[Effect] = []
        for parts in rows:
            ids = ids_of(parts)
            if ids not in seen:
                seen[ids] = query.interval(parts)[1]
                effects.append(Deliver(Combination(query.id, parts, query.row(parts), share)))
        if len(seen) > 100_000:
            newest = max(seen.values())
            old = newest - 4 * query.longest_window
            self._seen[query.id] = {i: end for i, end in seen.items() if end >= old}
        return effects

    def _watch(self) -> list[Effect]:
        return [
            Tell("p2p-streams", AskStream(stream, Watch(s.query.id, s.said)))
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
            if query.id in status.horizons:
                standing.horizons[status.stream] = status.horizons[query.id]
            known = standing.frontiers.get(status.stream, 0)
            standing.frontiers[status.stream] = max(known, status.frontier)
            effects += self._say(standing)
        return effects

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
        changes, over = changes_between(standing.query, standing.pending, horizon, since, upto)
        effects: list[Effect] = []
        for ids in over:
            del standing.pending[ids]
            effects.append(Persist(_key(standing.query.id, ids), None))
        standing.said = upto
        share = sum(standing.shares) / len(standing.shares) if standing.shares else 1.0
        standing.shares.clear()
        asked = Asked(to_text(standing.query), upto)
        return [
            *effects,
            Persist(f"q:{standing.query.id}", _encode(asked)),
            Deliver(Final(standing.query.id, since, upto, changes, share)),
        ]


Change = tuple[int, str, tuple[Value, ...]]


def changes_between(
    query: JoinQuery, pending: Mapping[tuple[Id, ...], Parts], horizon: int, since: int, upto: int
) -> tuple[tuple[Change, ...], list[tuple[Id, ...]]]:
    """The changelog in [since, upto), and the combinations that are over by then."""
    deltas: dict[int, Counter[tuple[Value, ...]]] = {}
    over = []
    for ids, parts in pending.items():
        start, end = query.interval(parts)
        if min(p.ts for p in parts) < horizon:
            if start < upto:
                over.append(ids)
            continue
        row = query.row(parts)
        if since <= start < upto:
            deltas.setdefault(start, Counter())[row] += 1
        if since <= end < upto:
            deltas.setdefault(end, Counter())[row] -= 1
        if end < upto:
            over.append(ids)
    found: list[Change] = []
    for instant in sorted(deltas):
        net = deltas[instant]
        found += [
            (instant, op, row)
            for op, sign in (("-", -1), ("+", 1))
            for row in sorted((r for r in net if sign * net[r] > 0), key=_row_key)
            for _ in range(abs(net[row]))
        ]
    return tuple(found), over


def _row_key(row: tuple[Value, ...]) -> tuple[tuple[bool, Any], ...]:
    return tuple((v is not None, v if v is not None else 0) for v in row)


def _key(query: str, ids: tuple[Id, ...]) -> str:
    return f"c:{query}:" + ",".join(f"{s}/{n}" for s, n in ids)
