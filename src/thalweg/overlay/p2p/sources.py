"""The sources at a node: what they retain, whose acknowledgements count, how far they have come.

Source: DHTJoin 4.3.2 (indexing). Beyond it: a tuple is retained until no query can need it any
more, so that a bucket's next owner can be given it again; and a source counts only those
acknowledgements that speak of owners which it has promised the buckets to (`promises`). As an owner
acknowledges nothing before all sources have promised it the bucket and sent what they retain of
it, two tuples that are both acknowledged have met: at the later of their owners at the latest.

A source's time is its node's clock, or *event time*: the newest of its tuples less its lateness.
What is below is late, and not taken. Where a source with event time is silent for long, or nothing
more can come of it, it promises as much as somebody waits for (`Status.wanted`).

Invariants: nothing is indexed before all copies have it. A source's frontier never passes a tuple
that is not acknowledged, nor one that is still to come.
"""

from __future__ import annotations

import msgspec

from thalweg.overlay.p2p.index_messages import (
    AcceptedUpto,
    EventTime,
    NotPublished,
    Opened,
    PromiseUpto,
    Publish,
    Published,
    Superseded,
)
from thalweg.overlay.p2p.peer import Peer
from thalweg.overlay.p2p.source import Batch, Buried, Kept, Meta, Source
from thalweg.overlay.p2p.stream_messages import AskStream, Look, Register, Report, Status
from thalweg.overlay.p2p.tuples import Tup, Value
from thalweg.overlay.protocol import Deliver, Effect, Persist, Tell
from thalweg.overlay.query_table import QueryTable
from thalweg.plan.windows import FOREVER

_REMEMBERED = 10_000  # batches, at least
_NOT_OPEN = "the source is not open (yet, or any more) at this node"

_encode = msgspec.msgpack.Encoder().encode


class Sources:
    def __init__(self, peer: Peer, table: QueryTable) -> None:
        self.sources: dict[str, Source] = {}
        self.buried: dict[tuple[str, str], Buried] = {}  # by source and batch
        self._peer = peer
        self._table = table

    # --- a source's life ---

    def open(self, stream: str, source: str, time: EventTime | None = None) -> list[Effect]:
        if source in self.sources:
            return []
        found = self.sources[source] = Source(stream, source, time=time)
        registers = self._peer.settings.registered
        asked = self.ask_to_open(found) if registers else self._open_unregistered(found)
        return [self.persist_meta(found), *asked]

    def ask_to_open(self, source: Source) -> list[Effect]:
        """One that others could go on with does not register again: it may have been passed on,
        and all of it be over. It would be admitted with tuples that have long taken effect, or as
        somebody that never speaks."""
        copied = self._peer.settings.copies > 0
        body = Look() if source.resumes else Register(source.id, copied)
        return [Tell("p2p-streams", AskStream(source.stream, body))]

    def _open_unregistered(self, source: Source) -> list[Effect]:
        """For eager queries alone: nobody has to know of it."""
        source.is_open = True
        source.logged_copies = ()
        return [Deliver(Opened(source.id))]

    def restore(self, meta: Meta, tuples: list[Tup], batches: dict[str, Batch]) -> None:
        self.sources[meta.id] = Source.restored(meta, tuples, batches)

    def persist_meta(self, source: Source) -> Effect:
        source.floor_on_disk = source.floor
        return Persist(f"m:{source.id}", _encode(source.meta))

    def told(self, now_us: int, status: Status) -> list[Effect]:
        """What the register says of this node's sources."""
        effects: list[Effect] = []
        speakers = {s: (epoch, address) for s, epoch, address in status.sources}
        for source in list(self.sources.values()):
            if source.stream != status.stream:
                continue
            if source.id not in speakers:
                if source.id in (status.lost or ()):
                    effects += self._give_up(source, source.epoch + 1, None)  # too late
                elif self._is_over(source, status):
                    effects += self._give_up(source, source.epoch, None)
                continue
            epoch, address = speakers[source.id]
            if epoch > source.epoch:
                effects += self._give_up(source, epoch, (status.ends or {}).get(source.id))
                continue
            if address != self._peer.address or epoch != source.epoch:
                continue
            if status.version < source.heard:
                continue  # overtaken on its way: other copies count by now
            source.heard = status.version
            source.logged_copies = status.copies.get(source.id, ())
            source.wanted = max(source.wanted, status.wanted)
            source.confirmed = max(source.confirmed, (status.turns or {}).get(source.id, 0))
            if source.is_open:
                effects += self.accept(source)
            elif self._knows_all(status):
                effects += self._begin(now_us, source, status)
        return effects

    def _is_over(self, source: Source, status: Status) -> bool:
        """Of a source that is not listed: not since it is too new, nor since the word is old."""
        if source.resumes and not source.is_open:
            return status.version >= source.heard
        return source.is_open and status.list_version >= source.listed

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

    def _give_up(self, source: Source, epoch: int, end: int | None) -> list[Effect]:
        del self.sources[source.id]
        for kept in source.log.values():
            for number in kept.open:
                self._peer.forget(number)
        gone: list[Effect] = [Persist(f"t:{source.id}:{seq}", None) for seq in source.log]
        for name, batch in source.batches.items():
            found = self.buried[source.id, name] = Buried(source.stream, batch.counts(end))
            gone.append(Persist(_batch_key(source, name), None))
            gone.append(Persist(f"g:{source.id}:{name}", _encode(found)))
        return [*gone, Persist(f"m:{source.id}", None), Deliver(Superseded(source.id, epoch))]

    def end(self, stream: str) -> list[Effect]:
        """The stream was dropped: nobody asks for its batches again."""
        effects: list[Effect] = []
        for source in [s for s in self.sources.values() if s.stream == stream]:
            effects += self._give_up(source, source.epoch, None)
        for id_, batch in [key for key, found in self.buried.items() if found.stream == stream]:
            del self.buried[id_, batch]
            effects.append(Persist(f"g:{id_}:{batch}", None))
        return effects

    def query_known(self, now_us: int, query: str) -> list[Effect]:
        streams = self._peer.dataflow.queries[query].streams
        effects: list[Effect] = []
        for source in self.sources.values():
            if source.stream in streams and source.is_open and query not in source.horizons:
                source.horizons[query] = self._after_all(now_us, source)
                if source.time is None:
                    source.floor = source.horizons[query]
                effects.append(self.persist_meta(source))
        return effects

    # --- publishing ---

    def _next_ts(self, now_us: int, source: Source) -> int:
        return max(now_us // self._peer.settings.instant_us, source.floor)

    def _after_all(self, now_us: int, source: Source) -> int:
        """An instant above all tuples that were not indexed for a query that is new."""
        if source.time is not None:
            return max(source.newest + 1, source.floor)
        return max(now_us // self._peer.settings.instant_us, source.floor + 1)

    def publish(self, now_us: int, request: Publish) -> list[Effect]:
        source = self.sources.get(request.source)
        if source is None or not source.is_open or source.is_heir:
            return [Deliver(NotPublished(request.source, request.tag, _NOT_OPEN))]
        if request.batch and (answer := self._known_batch(source, request)) is not None:
            return [Deliver(answer)]
        if source.time is not None:
            return self._publish_in_event_time(now_us, source, request)
        ts = self._next_ts(now_us, source) if request.ts is None else request.ts
        if ts < source.floor:
            why = f"the source has promised nothing below {source.floor}, and this is at {ts}"
            return [Deliver(NotPublished(request.source, request.tag, why))]
        source.floor = ts
        taken = [(ts, row) for row in request.rows]
        return self._take(source, request, taken, ())

    def _known_batch(self, source: Source, request: Publish) -> Published | NotPublished | None:
        """Of this source, or of one before it: ids of one origin's sources begin alike, up to a
        point. None: it is new, or was lost with the source that had it."""
        if request.batch in source.batches:
            return Published(source.id, request.tag, (), source.next_seq, repeated=True)
        origin = source.id.partition(".")[0]
        for (id_, batch), found in self.buried.items():
            is_it = batch == request.batch and found.stream == source.stream
            if not is_it or id_.partition(".")[0] != origin:
                continue
            if found.counts is None:
                why = (
                    "this batch may count in part: its source was given up while it came; push "
                    "what is missing under another id"
                )
                return NotPublished(source.id, request.tag, why, for_ever=True)
            if found.counts:
                return Published(source.id, request.tag, (), repeated=True)
        return None

    def _publish_in_event_time(self, now_us: int, source: Source, request: Publish) -> list[Effect]:
        """Each tuple is judged by those before it."""
        assert source.time is not None
        stamps = request.stamps or (request.ts or 0,) * len(request.rows)
        taken, late = [], []
        for place, (ts, row) in enumerate(zip(stamps, request.rows, strict=True)):
            if ts < source.floor:
                late.append(place)
                continue
            source.newest = max(source.newest, ts)
            source.floor = max(source.floor, source.newest - source.time.lateness)
            taken.append((ts, row))
        source.heard_us = now_us
        source.late += len(late)
        return self._take(source, request, taken, tuple(late))

    def _take(
        self,
        source: Source,
        request: Publish,
        taken: list[tuple[int, tuple[Value, ...]]],
        late: tuple[int, ...],
    ) -> list[Effect]:
        effects: list[Effect] = []
        tuples = []
        # An heir has to know how far a source had come, also by tuples that nobody wanted.
        first = source.next_seq
        keeps_all = source.time is not None and self._peer.settings.copies > 0
        source.arrived += len(taken)
        if taken:
            source.measured.take(len(taken), max(ts for ts, _ in taken))
        for ts, row in taken:
            self._peer.newest = max(self._peer.newest, ts)
            tup = Tup(source.stream, source.id, source.next_seq, ts, row)
            if not keeps_all and not self._peer.dataflow.stems_for(tup):
                tuples.append(Tup(source.stream, source.id, -1, ts, row))  # nobody's
                continue
            tuples.append(tup)
            source.next_seq += 1
            source.log[tup.seq] = Kept(tup)
            source.busy[tup.seq] = None
            effects.append(Persist(f"t:{source.id}:{tup.seq}", _encode(tup)))
        if request.batch:
            newest = max([ts for ts, _ in taken], default=-1)
            batch = source.batches[request.batch] = Batch(newest, first, source.next_seq)
            effects.append(Persist(_batch_key(source, request.batch), _encode(batch)))
            effects += self._forget_batches(source)
        done = Published(source.id, request.tag, tuple(tuples), source.next_seq, late)
        return [*effects, self.persist_meta(source), Deliver(done), *self.accept(source)]

    def _forget_batches(self, source: Source) -> list[Effect]:
        """Those of long ago, whose tuples would all be late if they came again."""
        gone: list[str] = []
        for name, batch in source.batches.items():
            if len(source.batches) - len(gone) <= _REMEMBERED or batch.newest >= source.floor:
                break
            gone.append(name)
        for name in gone:
            del source.batches[name]
        return [Persist(_batch_key(source, name), None) for name in gone]

    def promise(self, now_us: int, request: PromiseUpto) -> list[Effect]:
        source = self.sources.get(request.source)
        if source is None or not source.is_open or source.is_heir:
            return [Deliver(NotPublished(request.source, 0, _NOT_OPEN))]
        source.heard_us = now_us
        source.floor = max(source.floor, request.instant)
        return [
            self.persist_meta(source),
            Deliver(Published(source.id, 0, (), source.next_seq)),
        ]

    def accept(self, source: Source) -> list[Effect]:
        """Index what has all its copies."""
        upto = self._copied_upto(source)
        effects: list[Effect] = []
        if upto > source.accepted:
            source.accepted = upto
            effects.append(Deliver(AcceptedUpto(source.id, upto)))
        if source.is_open and self._is_awake(source):
            for seq in list(source.busy):
                if seq >= source.accepted:
                    break
                kept = source.log[seq]
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
        if not kept.open:
            source.busy.pop(kept.tup.seq, None)

    # --- acknowledgements ---

    def tuple_done(self, source_id: str, seq: int, number: int) -> None:
        source = self.sources.get(source_id)
        if source is not None and seq in source.log:
            source.log[seq].open.pop(number, None)
            if not source.log[seq].open:
                source.busy.pop(seq, None)

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
                self._goes_along(now_us, source),
                source.measured.rate,
                source.reported_since,
            )
            effects.append(Tell("p2p-streams", AskStream(source.stream, report)))
        return effects

    def frontier(self, now_us: int, source: Source) -> int:
        """What this source promises: nothing that has not taken effect is below it."""
        if source.time is None:
            if source.busy:
                return source.log[next(iter(source.busy))].tup.ts
            source.floor = self._next_ts(now_us, source)
            return source.floor
        if self._goes_along(now_us, source):
            wanted = source.wanted if source.is_heir or source.wanted < FOREVER else 0
            source.floor = max(source.floor, source.newest + 1, wanted)
        return min([source.log[seq].tup.ts for seq in source.busy] + [source.floor])

    def _goes_along(self, now_us: int, source: Source) -> bool:
        """Whether it promises what others wait for: nothing comes of it, for long or for ever."""
        if source.time is None:
            return False
        if source.is_heir:
            return True
        if source.heard_us is None:
            source.heard_us = now_us
        idle_us = source.time.idle_us
        return idle_us is not None and now_us - source.heard_us >= idle_us

    def _forget_unneeded(self, source: Source) -> list[Effect]:
        gone = []
        for seq, kept in source.log.items():
            if seq in source.busy or self._peer.needs(kept.tup):
                break
            gone.append(seq)
        for seq in gone:
            del source.log[seq]
        return [Persist(f"t:{source.id}:{seq}", None) for seq in gone]


def _batch_key(source: Source, batch: str) -> str:
    return f"b:{source.id}:{batch}"
