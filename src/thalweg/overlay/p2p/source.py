"""The sources at a node: what they retain, whose acknowledgements count, how far they have come.

Source: DHTJoin 4.3.2 (indexing). Beyond it: a tuple is retained until no query can need it any
more, so that a bucket's next owner can be given it again; and a source counts only those
acknowledgements that speak of owners which it has promised the buckets to (`promises`). As an owner
acknowledges nothing before all sources have promised it the bucket and sent what they retain of
it, two tuples that are both acknowledged have met: at the later of their owners at the latest.

Invariants: nothing is indexed before all copies have it. A source's frontier never passes a tuple
that is not acknowledged, nor one that is still to come.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from thalweg.overlay.p2p.index_messages import (
    AcceptedUpto,
    NotPublished,
    Opened,
    Publish,
    Published,
    Superseded,
)
from thalweg.overlay.p2p.peer import Peer
from thalweg.overlay.p2p.stream_messages import AskStream, Register, Report, Status
from thalweg.overlay.p2p.tuples import Tup
from thalweg.overlay.protocol import Address, Deliver, Effect, Persist, Tell
from thalweg.overlay.query_table import QueryTable

_encode = msgspec.msgpack.Encoder().encode


class Meta(msgspec.Struct, frozen=True):
    """What survives a restart, beside the tuples."""

    stream: str
    id: str
    epoch: int
    floor: int
    next_seq: int
    reported_copies: tuple[Address, ...]
    horizons: dict[str, int]
    is_heir: bool
    turn: int = 0


@dataclass(slots=True)
class Kept:
    tup: Tup
    indexed: bool = False
    open: dict[int, None] = field(default_factory=dict)  # items that are not done


@dataclass(slots=True)
class Source:
    stream: str
    id: str
    epoch: int = 1
    floor: int = 0  # nothing below it will come
    next_seq: int = 0
    floor_on_disk: int = 0
    is_open: bool = False
    listed: int = 0  # since which version of its stream's list
    is_heir: bool = False  # of a lost source: nothing more will come
    log: dict[int, Kept] = field(default_factory=dict)
    horizons: dict[str, int] = field(default_factory=dict)
    logged_copies: tuple[Address, ...] | None = None  # as the register has them; None: not heard
    reported_copies: tuple[Address, ...] = ()
    copied: dict[Address, int] = field(default_factory=dict)  # holder -> has all before
    copied_at_us: dict[Address, int] = field(default_factory=dict)
    accepted: int = 0  # all before it are
    turn: int = 0  # odd: idle, and the stream may sleep
    confirmed: int = 0  # the turn that the register has

    @property
    def first(self) -> int:
        return next(iter(self.log), self.next_seq)


class Sources:
    def __init__(self, peer: Peer, table: QueryTable) -> None:
        self.sources: dict[str, Source] = {}
        self._peer = peer
        self._table = table

    # --- a source's life ---

    def open(self, stream: str, source: str) -> list[Effect]:
        if source in self.sources:
            return []
        found = self.sources[source] = Source(stream, source)
        registers = self._peer.settings.registered
        asked = self.ask_to_open(found) if registers else self._open_unregistered(found)
        return [self.persist_meta(found), *asked]

    def ask_to_open(self, source: Source) -> list[Effect]:
        copied = self._peer.settings.copies > 0
        return [Tell("p2p-streams", AskStream(source.stream, Register(source.id, copied)))]

    def _open_unregistered(self, source: Source) -> list[Effect]:
        """For eager queries alone: nobody has to know of it."""
        source.is_open = True
        source.logged_copies = ()
        return [Deliver(Opened(source.id))]

    def restore(self, meta: Meta, tuples: list[Tup]) -> None:
        source = Source(meta.stream, meta.id, meta.epoch, meta.floor, meta.next_seq, meta.floor)
        source.is_heir = meta.is_heir
        source.turn = meta.turn
        source.reported_copies = meta.reported_copies
        source.horizons = dict(meta.horizons)
        source.log = {t.seq: Kept(t) for t in sorted(tuples, key=lambda t: t.seq)}
        source.accepted = source.first
        self.sources[meta.id] = source

    def persist_meta(self, source: Source) -> Effect:
        source.floor_on_disk = source.floor
        meta = Meta(
            source.stream,
            source.id,
            source.epoch,
            source.floor,
            source.next_seq,
            source.reported_copies,
            source.horizons,
            source.is_heir,
            source.turn,
        )
        return Persist(f"m:{source.id}", _encode(meta))

    def told(self, now_us: int, status: Status) -> list[Effect]:
        """What the register says of this node's sources."""
        effects: list[Effect] = []
        speakers = {s: (epoch, address) for s, epoch, address in status.sources}
        for source in list(self.sources.values()):
            if source.stream != status.stream:
                continue
            if source.id not in speakers:
                if source.is_open and status.list_version >= source.listed:
                    effects += self._give_up(source, source.epoch)  # all of it is over
                continue
            epoch, address = speakers[source.id]
            if epoch > source.epoch:
                effects += self._give_up(source, epoch)
                continue
            if address != self._peer.address or epoch != source.epoch:
                continue
            source.logged_copies = status.copies.get(source.id, ())
            source.confirmed = max(source.confirmed, (status.turns or {}).get(source.id, 0))
            if source.is_open:
                effects += self.accept(source)
            elif self._knows_all(status):
                effects += self._begin(now_us, source, status)
        return effects

    def _knows_all(self, status: Status) -> bool:
        return all(self._table.get(q) is not None for q in status.horizons)

    def _begin(self, now_us: int, source: Source, status: Status) -> list[Effect]:
        source.is_open = True
        source.listed = status.list_version
        source.turn = max(source.turn, (status.turns or {}).get(source.id, 0))
        source.floor = max(source.floor, status.frontier)
        for query in self._peer.dataflow.queries.values():
            if source.stream in query.streams:
                source.horizons.setdefault(query.id, self._after_all(now_us, source))
        return [self.persist_meta(source), Deliver(Opened(source.id)), *self.accept(source)]

    def _give_up(self, source: Source, epoch: int) -> list[Effect]:
        del self.sources[source.id]
        for kept in source.log.values():
            for number in kept.open:
                self._peer.forget(number)
        gone: list[Effect] = [Persist(f"t:{source.id}:{seq}", None) for seq in source.log]
        return [*gone, Persist(f"m:{source.id}", None), Deliver(Superseded(source.id, epoch))]

    def query_known(self, now_us: int, query: str) -> list[Effect]:
        streams = self._peer.dataflow.queries[query].streams
        effects: list[Effect] = []
        for source in self.sources.values():
            if source.stream in streams and source.is_open and query not in source.horizons:
                source.horizons[query] = source.floor = self._after_all(now_us, source)
                effects.append(self.persist_meta(source))
        return effects

    # --- publishing ---

    def _next_ts(self, now_us: int, source: Source) -> int:
        return max(now_us // self._peer.settings.instant_us, source.floor)

    def _after_all(self, now_us: int, source: Source) -> int:
        """An instant above all tuples that were not indexed for a query that is new."""
        return max(now_us // self._peer.settings.instant_us, source.floor + 1)

    def publish(self, now_us: int, request: Publish) -> list[Effect]:
        source = self.sources.get(request.source)
        if source is None or not source.is_open or source.is_heir:
            why = "the source is not open (yet, or any more) at this node"
            return [Deliver(NotPublished(request.source, request.tag, why))]
        ts = self._next_ts(now_us, source) if request.ts is None else request.ts
        if ts < source.floor:
            why = f"the source has promised nothing below {source.floor}, and this is at {ts}"
            return [Deliver(NotPublished(request.source, request.tag, why))]
        source.floor = ts
        self._peer.newest = max(self._peer.newest, ts)
        effects: list[Effect] = []
        tuples = []
        for row in request.rows:
            tup = Tup(source.stream, source.id, source.next_seq, ts, row)
            if not self._peer.dataflow.stems_for(tup):
                tuples.append(Tup(source.stream, source.id, -1, ts, row))  # nobody's
                continue
            tuples.append(tup)
            source.next_seq += 1
            source.log[tup.seq] = Kept(tup)
            effects.append(Persist(f"t:{source.id}:{tup.seq}", _encode(tup)))
        effects += [
            self.persist_meta(source),
            Deliver(Published(source.id, request.tag, tuple(tuples))),
        ]
        return effects + self.accept(source)

    def accept(self, source: Source) -> list[Effect]:
        """Index what has all its copies."""
        upto = self._copied_upto(source)
        effects: list[Effect] = []
        if upto > source.accepted:
            source.accepted = upto
            effects.append(Deliver(AcceptedUpto(source.id, upto)))
        if source.is_open and self._is_awake(source):
            for seq, kept in source.log.items():
                if seq >= source.accepted:
                    break
                if not kept.indexed:
                    self._index(source, kept)
        return effects

    def _is_awake(self, source: Source) -> bool:
        """Who was idle tells the register first: others rest while the stream sleeps."""
        if source.turn % 2 and source.log:
            source.turn += 1
        return source.turn % 2 == 0 and source.confirmed >= source.turn

    def _may_rest(self, source: Source) -> bool:
        """Nothing of it is in any window; only where that spares others work."""
        return self._peer.settings.alerts and not source.log and source.turn % 2 == 0

    def _copied_upto(self, source: Source) -> int:
        wanted = self._peer.settings.copies
        logged = source.logged_copies
        if wanted == 0:
            return source.next_seq
        if logged is None or len(logged) < wanted:
            return source.accepted
        # An heir's holders too have to have its log: they may have had another end.
        return min(source.copied.get(a, 0) for a in (*logged, *source.reported_copies))

    def _index(self, source: Source, kept: Kept) -> None:
        kept.indexed = True
        for stem in self._peer.dataflow.stems_for(kept.tup):
            if self._peer.is_in_vain(stem):
                continue  # who needs it later claims it
            number = self._peer.enqueue(stem, (kept.tup,), (source.id, kept.tup.seq))
            kept.open[number] = None

    # --- acknowledgements ---

    def tuple_done(self, source_id: str, seq: int, number: int) -> None:
        source = self.sources.get(source_id)
        if source is not None and seq in source.log:
            source.log[seq].open.pop(number, None)

    def report(self, now_us: int) -> list[Effect]:
        effects: list[Effect] = []
        if not self._peer.settings.registered:
            return [e for s in self.sources.values() for e in self._forget_unneeded(s)]
        for source in list(self.sources.values()):
            if not source.is_open:
                effects += self.ask_to_open(source)
                continue
            status = self._peer.statuses.get(source.stream)
            if status is None or not self._knows_all(status):
                continue
            effects += self._forget_unneeded(source)
            frontier, floor = self.frontier(now_us, source), source.floor
            if floor > source.floor_on_disk:
                effects.append(self.persist_meta(source))  # a promise survives a restart
            if self._may_rest(source) and source.confirmed == source.turn:
                source.turn += 1
                effects.append(self.persist_meta(source))
            undecided = {q: h for q, h in source.horizons.items() if q not in status.horizons}
            report = Report(
                source.id,
                source.epoch,
                frontier,
                source.reported_copies,
                undecided,
                source.turn,
                source.is_heir and not source.log,
            )
            effects.append(Tell("p2p-streams", AskStream(source.stream, report)))
        return effects

    def frontier(self, now_us: int, source: Source) -> int:
        """What this source promises: nothing that has not taken effect is below it."""
        for kept in source.log.values():
            if kept.open or not kept.indexed:
                return kept.tup.ts
        source.floor = self._next_ts(now_us, source)
        return source.floor

    def _forget_unneeded(self, source: Source) -> list[Effect]:
        effects: list[Effect] = []
        for seq, kept in list(source.log.items()):
            if kept.open or not kept.indexed or self._is_needed(kept.tup):
                break
            del source.log[seq]
            effects.append(Persist(f"t:{source.id}:{seq}", None))
        return effects

    def _is_needed(self, tup: Tup) -> bool:
        """Whether a later owner of its bucket would need it."""
        dataflow, done = self._peer.dataflow, self._peer.done
        for query in dataflow.queries.values():
            if query.eager:
                continue
            windows = [leaf.window for leaf in query.leaves if leaf.stream == tup.stream]
            if windows and done.get(query.id, 0) < tup.ts + max(windows) + 1:
                return True
        return False
