"""Copies of what sources retain: r other nodes have each tuple before it is indexed.

Invariants: a holder has a source's log without gaps. A holder that was told to fence a source takes
no more from the old speaker, for ever, also when it speaks for the source itself or did so once; so
all that was ever accepted is in its log when it begins to. New holders count once the register
names them, old ones until it does not; and who lost its disk, and with it its fences, is a new one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from thalweg.overlay.p2p.index_messages import Copied, Copy, EventTime, TookOver
from thalweg.overlay.p2p.peer import Peer
from thalweg.overlay.p2p.register import Disk, address_of
from thalweg.overlay.p2p.source import Kept, Source
from thalweg.overlay.p2p.sources import Sources
from thalweg.overlay.p2p.stream_messages import FenceAnswer, FenceCopy, Fenced, Status
from thalweg.overlay.p2p.tuples import Tup
from thalweg.overlay.protocol import Address, Deliver, Effect, Persist, Send, Tell

_encode = msgspec.msgpack.Encoder().encode
_AGAIN_US = 800_000
_GIVE_UP_US = 5_000_000  # on a holder that does not answer
_STILL_THERE_US = 3_000_000  # a holder of a silent source is asked: it may have lost its disk


class Spoken(msgspec.Struct, frozen=True, array_like=True):
    """This node speaks for a source, or did: lower epochs are over."""

    stream: str
    epoch: int


class CopyMeta(msgspec.Struct, frozen=True):
    stream: str
    source: str
    epoch: int
    fence: int
    first: int
    end: int
    time: EventTime | None = None
    newest: int = -1


@dataclass(slots=True)
class CopyLog:
    stream: str
    source: str
    epoch: int  # of the speaker whose log it is
    fence: int  # copies of lower epochs are refused
    first: int = 0
    end: int = 0
    tuples: dict[int, Tup] = field(default_factory=dict)
    time: EventTime | None = None
    newest: int = -1  # instant that the source has had a tuple of


class Copies:
    def __init__(self, peer: Peer, sources: Sources) -> None:
        self.logs: dict[str, CopyLog] = {}
        self.spoken: dict[str, Spoken] = {}  # by source
        self.disk: Disk = ""  # names this node's disk
        self._peer = peer
        self._sources = sources
        self._asked_us: dict[tuple[str, Address], int] = {}
        self._since_us: dict[tuple[str, Address], int] = {}  # without an answer
        self._shunned: dict[tuple[str, Address], None] = {}

    # --- the source's side ---

    def tend(self, now_us: int) -> list[Effect]:
        effects: list[Effect] = []
        if self._peer.settings.copies:
            for source in self._sources.sources.values():
                if source.logged_copies is not None:
                    effects += self._tend(now_us, source)
        return effects

    def _tend(self, now_us: int, source: Source) -> list[Effect]:
        logged = source.logged_copies or ()
        holders = self._wanted(now_us, source, logged)
        effects = []
        counted = [address_of(d) for d in (*logged, *source.reported_copies)]
        for holder in dict.fromkeys((*holders, *counted)):
            effects += self._send(now_us, source, holder)
        disks = tuple([source.disks.get(h, "") for h in holders])
        complete = all(source.copied.get(d, -1) >= source.next_seq for d in disks)
        settled = source.reported_copies in (logged, ())  # one change of holders at a time
        full = complete and len(disks) == self._peer.settings.copies
        if full and settled and disks != source.reported_copies:
            source.reported_copies, source.reported_since = disks, source.heard
            effects.append(self._sources.persist_meta(source))
        return effects

    def _wanted(self, now_us: int, source: Source, logged: tuple[Disk, ...]) -> tuple[Address, ...]:
        """Those that have it and are there; then the next on the ring."""
        count = self._peer.settings.copies

        def fit(address: Address) -> bool:
            since_us = self._since_us.get((source.id, address))
            if since_us is not None and now_us - since_us > _GIVE_UP_US:
                self._shunned[source.id, address] = None
            down = self._peer.membership.is_down(address)
            return not down and (source.id, address) not in self._shunned

        candidates = [address_of(d) for d in (*logged, *source.reported_copies)]
        candidates += [*self._peer.chord.table.successors, *self._peer.membership.up()]
        found = [a for a in dict.fromkeys(candidates) if a != self._peer.address and fit(a)]
        if len(found) < count:
            self._shunned.clear()
            self._since_us.clear()
        return tuple(found[:count])

    def send_all(self, now_us: int, source: Source) -> list[Effect]:
        """A new tuple: to all who hold copies, at once."""
        disks = (*(source.logged_copies or ()), *source.reported_copies)
        holders = dict.fromkeys(address_of(d) for d in disks)
        return [e for h in holders for e in self._send(now_us, source, h, again=True)]

    def _send(
        self, now_us: int, source: Source, holder: Address, *, again: bool = False
    ) -> list[Effect]:
        disk = source.disks.get(holder, "")
        start = max(source.copied.get(disk, 0), source.first)
        key = (source.id, holder)
        has_all = start >= source.next_seq and disk in source.copied
        every_us = _STILL_THERE_US if has_all else _AGAIN_US
        if (has_all or not again) and now_us - self._asked_us.get(key, -every_us) < every_us:
            return []
        self._asked_us[key] = now_us
        self._since_us.setdefault(key, now_us)
        tuples = tuple([k.tup for seq, k in source.log.items() if seq >= start])
        message = Copy(
            source.stream,
            source.id,
            source.epoch,
            source.first,
            start,
            tuples,
            source.time,
            source.newest,
        )
        return [Send(holder, message)]

    def copied(self, holder: Address, message: Copied) -> list[Effect]:
        source = self._sources.sources.get(message.source)
        if source is None or source.epoch != message.epoch:
            return []
        self._since_us.pop((source.id, holder), None)
        source.disks[holder] = message.disk
        source.copied[message.disk] = max(message.upto, source.copied.get(message.disk, 0))
        return self._sources.accept(source)

    # --- the holder's side ---

    def copy(self, sender: Address, message: Copy) -> list[Effect]:
        log = self.logs.get(message.source)
        spoken = self.spoken.get(message.source)
        if spoken is not None and message.epoch < spoken.epoch:
            return []
        if log is None or log.epoch < message.epoch:
            # A new speaker's log is the truth: what an older one said beyond it never was.
            gone = list(log.tuples) if log is not None else []
            fence = message.epoch if log is None else max(message.epoch, log.fence)
            if message.epoch < fence:
                return []
            first = message.first
            log = CopyLog(message.stream, message.source, message.epoch, fence, first, first)
            log.time = message.time
            self.logs[message.source] = log
            effects = [Persist(f"c:{message.source}:{seq}", None) for seq in gone]
        elif message.epoch < max(log.epoch, log.fence):
            return []
        else:
            effects = []
        log.newest = max(log.newest, message.newest)
        # A gap may only be where the source itself has nothing any more: its `first` is the first
        # tuple that it sends. If it leaves out others, it thinks that they are here; they were on
        # the disk before this one.
        if message.start <= log.end or message.first == message.start:
            log.end = max(log.end, message.first)
            for tup in message.tuples:
                if tup.seq == log.end:
                    log.tuples[tup.seq] = tup
                    log.end = tup.seq + 1
                    effects.append(Persist(f"c:{log.source}:{tup.seq}", _encode(tup)))
        if message.first > log.first:
            log.first = message.first
            for seq in [s for s in log.tuples if s < log.first]:
                del log.tuples[seq]
                effects.append(Persist(f"c:{log.source}:{seq}", None))
        answer = Copied(message.source, message.epoch, log.end, self.disk)
        return [*effects, self._persist(log), Send(sender, answer)]

    def _persist(self, log: CopyLog) -> Effect:
        meta = CopyMeta(
            log.stream,
            log.source,
            log.epoch,
            log.fence,
            log.first,
            log.end,
            log.time,
            log.newest,
        )
        return Persist(f"k:{log.source}", _encode(meta))

    def restore(self, meta: CopyMeta, tuples: list[Tup]) -> None:
        log = CopyLog(meta.stream, meta.source, meta.epoch, meta.fence, meta.first, meta.end)
        log.time, log.newest = meta.time, meta.newest
        log.tuples = {t.seq: t for t in sorted(tuples, key=lambda t: t.seq)}
        self.logs[meta.source] = log

    def end(self, stream: str) -> list[Effect]:
        """The stream was dropped."""
        effects: list[Effect] = []
        for log in [x for x in self.logs.values() if x.stream == stream]:
            del self.logs[log.source]
            effects += [Persist(f"c:{log.source}:{seq}", None) for seq in log.tuples]
            effects.append(Persist(f"k:{log.source}", None))
        for source in [s for s, spoken in self.spoken.items() if spoken.stream == stream]:
            del self.spoken[source]
            effects.append(Persist(f"x:{source}", None))
        return effects

    def fence(self, request: FenceCopy) -> list[Effect]:
        fence = request.fence
        log = self.logs.get(fence.source)
        has_it = log is not None and log.epoch < fence.epoch and log.fence <= fence.epoch
        end = log.end if log is not None else -1
        answer = Fenced(fence.stream, fence.source, fence.epoch, has_it, end, self.disk)
        effects: list[Effect] = []
        if log is not None and has_it:
            log.fence = fence.epoch
            effects.append(self._persist(log))
        return [*effects, Tell("p2p-streams", FenceAnswer(request.leader, answer))]

    def adopt(self, status: Status) -> list[Effect]:
        """Speak for those sources that the register has given to this node."""
        effects: list[Effect] = []
        for source_id, epoch, address in status.sources:
            log = self.logs.get(source_id)
            if address != self._peer.address or log is None or log.fence != epoch:
                continue
            if source_id in self._sources.sources:
                continue
            # Another may have spoken since, whose copies ended earlier: the rest never counted.
            end = min(log.end, (status.ends or {}).get(source_id, log.end))
            source = Source(log.stream, source_id, epoch, 0, end)
            source.is_heir, source.heard = True, status.version
            source.passed = status.frontier
            source.time, source.newest = log.time, log.newest
            source.accepted = min(log.first, end)
            source.log = {seq: Kept(t) for seq, t in sorted(log.tuples.items()) if seq < end}
            source.busy = dict.fromkeys(source.log)
            self._sources.sources[source_id] = source
            del self.logs[source_id]
            spoken = self.spoken[source_id] = Spoken(log.stream, epoch)
            effects.append(Persist(f"x:{source_id}", _encode(spoken)))
            effects += [Persist(f"c:{source_id}:{seq}", None) for seq in log.tuples]
            effects += [
                Persist(f"t:{source_id}:{seq}", _encode(k.tup)) for seq, k in source.log.items()
            ]
            effects += [
                Persist(f"k:{source_id}", None),
                self._sources.persist_meta(source),
                Deliver(TookOver(source_id, epoch, end)),
            ]
        return effects
