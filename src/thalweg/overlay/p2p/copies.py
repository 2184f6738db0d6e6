"""Copies of what sources retain: r other nodes have each tuple before it is indexed.

Invariants: a holder has a source's log without gaps. A holder that was told to fence a source takes
no more from the old speaker; so when it speaks for the source itself, all that was ever accepted is
in its log. New holders count once the register names them, old ones until it does not.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from thalweg.overlay.p2p.index_messages import Copied, Copy, TookOver
from thalweg.overlay.p2p.peer import Peer
from thalweg.overlay.p2p.source import Kept, Source, Sources
from thalweg.overlay.p2p.stream_messages import FenceAnswer, FenceCopy, Fenced, Status
from thalweg.overlay.p2p.tuples import Tup
from thalweg.overlay.protocol import Address, Deliver, Effect, Persist, Send, Tell

_encode = msgspec.msgpack.Encoder().encode
_AGAIN_US = 800_000
_GIVE_UP_US = 5_000_000  # on a holder that does not answer


class CopyMeta(msgspec.Struct, frozen=True):
    stream: str
    source: str
    epoch: int
    fence: int
    first: int
    end: int


@dataclass(slots=True)
class CopyLog:
    stream: str
    source: str
    epoch: int  # of the speaker whose log it is
    fence: int  # copies of lower epochs are refused
    first: int = 0
    end: int = 0
    tuples: dict[int, Tup] = field(default_factory=dict)


class Copies:
    def __init__(self, peer: Peer, sources: Sources) -> None:
        self.logs: dict[str, CopyLog] = {}
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
        for holder in dict.fromkeys((*holders, *logged, *source.reported_copies)):
            effects += self._send(now_us, source, holder)
        complete = all(source.copied.get(h, 0) >= source.next_seq for h in holders)
        settled = source.reported_copies in (logged, ())  # one change of holders at a time
        full = complete and len(holders) == self._peer.settings.copies
        if full and settled and holders != source.reported_copies:
            source.reported_copies = holders
            effects.append(self._sources.persist_meta(source))
        return effects

    def _wanted(
        self, now_us: int, source: Source, logged: tuple[Address, ...]
    ) -> tuple[Address, ...]:
        """Those that have it and are there; then the next on the ring."""
        count = self._peer.settings.copies

        def fit(address: Address) -> bool:
            since_us = self._since_us.get((source.id, address))
            if since_us is not None and now_us - since_us > _GIVE_UP_US:
                self._shunned[source.id, address] = None
            down = self._peer.membership.is_down(address)
            return not down and (source.id, address) not in self._shunned

        candidates = [*logged, *source.reported_copies, *self._peer.chord.table.successors]
        candidates += self._peer.membership.up()
        found = [a for a in dict.fromkeys(candidates) if a != self._peer.address and fit(a)]
        if len(found) < count:
            self._shunned.clear()
            self._since_us.clear()
        return tuple(found[:count])

    def send_all(self, now_us: int, source: Source) -> list[Effect]:
        """A new tuple: to all who hold copies, at once."""
        holders = dict.fromkeys((*(source.logged_copies or ()), *source.reported_copies))
        return [e for h in holders for e in self._send(now_us, source, h, again=True)]

    def _send(
        self, now_us: int, source: Source, holder: Address, *, again: bool = False
    ) -> list[Effect]:
        start = max(source.copied.get(holder, 0), source.first)
        key = (source.id, holder)
        if start >= source.next_seq and holder in source.copied:
            self._since_us.pop(key, None)
            return []
        if not again and now_us - self._asked_us.get(key, -_AGAIN_US) < _AGAIN_US:
            return []
        self._asked_us[key] = now_us
        self._since_us.setdefault(key, now_us)
        tuples = tuple([k.tup for seq, k in source.log.items() if seq >= start])
        message = Copy(source.stream, source.id, source.epoch, source.first, start, tuples)
        return [Send(holder, message)]

    def copied(self, holder: Address, message: Copied) -> list[Effect]:
        source = self._sources.sources.get(message.source)
        if source is None or source.epoch != message.epoch:
            return []
        self._since_us.pop((source.id, holder), None)
        source.copied[holder] = message.upto
        return self._sources.accept(source)

    # --- the holder's side ---

    def copy(self, sender: Address, message: Copy) -> list[Effect]:
        log = self.logs.get(message.source)
        if log is None or log.epoch < message.epoch:
            # A new speaker's log is the truth: what an older one said beyond it never was.
            gone = list(log.tuples) if log is not None else []
            fence = message.epoch if log is None else max(message.epoch, log.fence)
            if message.epoch < fence:
                return []
            first = message.first
            log = CopyLog(message.stream, message.source, message.epoch, fence, first, first)
            self.logs[message.source] = log
            effects = [Persist(f"c:{message.source}:{seq}", None) for seq in gone]
        elif message.epoch < max(log.epoch, log.fence):
            return []
        else:
            effects = []
        if message.start <= log.end or message.first >= log.end:
            if message.first >= log.end:
                log.end = max(log.end, message.start)
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
        answer = Copied(message.source, message.epoch, log.end)
        return [*effects, self._persist(log), Send(sender, answer)]

    def _persist(self, log: CopyLog) -> Effect:
        meta = CopyMeta(log.stream, log.source, log.epoch, log.fence, log.first, log.end)
        return Persist(f"k:{log.source}", _encode(meta))

    def restore(self, meta: CopyMeta, tuples: list[Tup]) -> None:
        log = CopyLog(meta.stream, meta.source, meta.epoch, meta.fence, meta.first, meta.end)
        log.tuples = {t.seq: t for t in sorted(tuples, key=lambda t: t.seq)}
        self.logs[meta.source] = log

    def fence(self, request: FenceCopy) -> list[Effect]:
        fence = request.fence
        log = self.logs.get(fence.source)
        has_it = log is not None and log.epoch < fence.epoch and log.fence <= fence.epoch
        answer = Fenced(fence.stream, fence.source, fence.epoch, has_it)
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
            source = Source(log.stream, source_id, epoch, 0, log.end)
            source.is_heir = True
            source.accepted = log.first
            source.log = {seq: Kept(t) for seq, t in sorted(log.tuples.items())}
            self._sources.sources[source_id] = source
            del self.logs[source_id]
            effects += [Persist(f"c:{source_id}:{seq}", None) for seq in source.log]
            effects += [
                Persist(f"t:{source_id}:{seq}", _encode(k.tup)) for seq, k in source.log.items()
            ]
            effects += [
                Persist(f"k:{source_id}", None),
                self._sources.persist_meta(source),
                Deliver(TookOver(source_id, epoch, log.end)),
            ]
        return effects
