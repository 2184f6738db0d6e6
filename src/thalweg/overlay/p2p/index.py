"""Indexing: tuples go to the owners of their join values, and meet there.

Source: DHTJoin (seed 003) 3.2.2, 4.3.2, 4.3.3. The roles of a node have a file each: `source`,
`copies`, `answers`, `owner`, `claims`, `partners`; `peer` is what they share. Here events are
routed to them.

Messages: Put and Done, Unknown and Teach, Claim, Promised and Refused, Copy and Copied.

Promise: with r copies, no more than r losses at once, and enough memory, an exact query's results
are the reference's on the tuples that were accepted: all of them, each once, once final. What is
said is never wrong, whatever fails: where nobody can know, everybody waits.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from thalweg.overlay.chord.protocol import Chord
from thalweg.overlay.generator import Generator
from thalweg.overlay.membership import Membership
from thalweg.overlay.p2p.answers import Answers, Job, PromisesOnDisk
from thalweg.overlay.p2p.copies import Copies, CopyMeta, Spoken
from thalweg.overlay.p2p.dataflow import Dataflow
from thalweg.overlay.p2p.found_rows import Task
from thalweg.overlay.p2p.index_messages import (
    MESSAGES,
    AskRoom,
    Claim,
    Copied,
    Copy,
    Done,
    Open,
    Overloaded,
    Pass,
    Passed,
    Promised,
    PromiseUpto,
    Publish,
    Put,
    Refused,
    Room,
    Teach,
    Unknown,
)
from thalweg.overlay.p2p.owner import Owner
from thalweg.overlay.p2p.peer import Peer, PeerSettings
from thalweg.overlay.p2p.promises import Promises
from thalweg.overlay.p2p.query import from_text
from thalweg.overlay.p2p.result_messages import RowsDone
from thalweg.overlay.p2p.source import Batch, Buried, Meta
from thalweg.overlay.p2p.sources import Sources
from thalweg.overlay.p2p.stream_messages import FenceCopy, Status, StreamGone
from thalweg.overlay.p2p.tuples import Tup
from thalweg.overlay.protocol import (
    Address,
    Call,
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
from thalweg.overlay.query_spreading import Learn, Learned, QuerySpreading

_decode_tup = msgspec.msgpack.Decoder(Tup).decode


class Index:
    name = "p2p-index"
    messages = MESSAGES
    listens_to = ("query-spreading", "p2p-streams", "p2p-results")

    def __init__(
        self,
        chord: Chord,
        membership: Membership,
        spreading: QuerySpreading,
        settings: PeerSettings | None = None,
    ) -> None:
        self.settings = settings or PeerSettings()
        self.peer = Peer(chord, membership, self.settings)
        self._spreading = spreading
        self.sources = Sources(self.peer, spreading.table)
        self.answers = Answers(self.peer, self.sources)
        self.copies = Copies(self.peer, self.sources)
        self.owner = Owner(self.peer, spreading.table)

    def step(self, now_us: int, event: Event) -> list[Effect]:
        if type(event) is Receive:
            effects = self._receive(now_us, event.sender, event.message)
        else:
            effects = self._other(now_us, event)
        return self._finish(now_us, effects)

    def _other(self, now_us: int, event: Event) -> list[Effect]:
        match event:
            case TimerFired("report"):
                again = SetTimer("report", self.settings.report_every_us)
                effects = [*self.sources.report(now_us), *self.copies.tend(now_us)]
                return [again, *effects, *self.answers.replay()]
            case TimerFired("retry"):
                self.peer.retry(now_us)
                return [SetTimer("retry", self.settings.retry_every_us)]
            case TimerFired("tend"):
                return [SetTimer("tend", self.settings.claim_every_us), *self.owner.tend(now_us)]
            case Call(Publish() as request):
                effects = self.sources.publish(now_us, request)
                source = self.sources.sources.get(request.source)
                if source is not None and self.settings.copies:
                    effects += self.copies.send_all(now_us, source)
                return effects
            case Heard(_, RowsDone(token)):
                self.owner.rows_done(token)
            case Heard(_, Status() as status):
                return self._told(now_us, status)
            case Heard(_, Learned()):
                return self._queries_changed(now_us)
            case Call(PromiseUpto() as request):
                return self.sources.promise(now_us, request)
            case Call(Open(stream, source, time)):
                return self.sources.open(stream, source, time)
            case Call(StreamGone(stream)):
                self.peer.statuses.pop(stream, None)
                return [*self.sources.end(stream), *self.copies.end(stream)]
            case Call(FenceCopy() as request):
                return self.copies.fence(request)
            case Init(address, seed, persisted):
                return self._init(now_us, address, seed, persisted)
        return []

    def _init(
        self, now_us: int, address: Address, seed: int, persisted: Mapping[str, bytes]
    ) -> list[Effect]:
        self.peer.address = address
        generator = Generator(seed)
        # Numbers of an earlier life may still be under way: begin elsewhere.
        self.peer.start(generator.below(1 << 40) << 20)
        life = f"{address}#{generator.bits():x}"
        self.owner.start(f"{life}.", generator.below(1 << 40) << 20)
        self._restore(persisted)
        named: list[Effect] = []
        if not self.copies.disk:
            self.copies.disk = life  # the first one on this disk
            named.append(Persist("disk", life.encode()))
        settings = self.settings
        effects = self._queries_changed(now_us)
        return [
            *named,
            *effects,
            SetTimer("report", generator.below(settings.report_every_us)),
            SetTimer("retry", settings.retry_every_us),
            SetTimer("tend", generator.below(settings.claim_every_us)),
        ]

    def _restore(self, persisted: Mapping[str, bytes]) -> None:
        tuples: dict[str, list[Tup]] = {}
        batches: dict[str, dict[str, Batch]] = {}
        for key, value in persisted.items():
            if key[:2] in ("t:", "c:"):
                tup = _decode_tup(value)
                tuples.setdefault(key[:2] + tup.source, []).append(tup)
            elif key.startswith("b:"):
                _, source, batch = key.split(":", 2)
                batches.setdefault(source, {})[batch] = msgspec.msgpack.decode(value, type=Batch)
            elif key.startswith("g:"):
                _, source, batch = key.split(":", 2)
                buried = msgspec.msgpack.decode(value, type=Buried)
                self.sources.buried[source, batch] = buried
        for key, value in persisted.items():
            if key.startswith("m:"):
                meta = msgspec.msgpack.decode(value, type=Meta)
                known = batches.get(meta.id, {})
                self.sources.restore(meta, tuples.get(f"t:{meta.id}", []), known)
            elif key.startswith("k:"):
                copy_meta = msgspec.msgpack.decode(value, type=CopyMeta)
                self.copies.restore(copy_meta, tuples.get(f"c:{copy_meta.source}", []))
            elif key.startswith("x:"):
                spoken = msgspec.msgpack.decode(value, type=Spoken)
                self.copies.spoken[key.removeprefix("x:")] = spoken
            elif key == "disk":
                self.copies.disk = value.decode()
            elif key == "promises":
                on_disk = msgspec.msgpack.decode(value, type=PromisesOnDisk)
                self.answers.promises = Promises(on_disk.entries)
                self.peer.claimed_versions = on_disk.versions

    def _queries_changed(self, now_us: int) -> list[Effect]:
        table = self._spreading.table
        standing = [from_text(r.text) for r in table if not r.dropped and r.text.startswith("{")]
        self.peer.dataflow = Dataflow(standing)
        return [e for q in standing for e in self.sources.query_known(now_us, q.id)]

    def _told(self, now_us: int, status: Status) -> list[Effect]:
        self.peer.learn(status)
        effects: list[Effect] = []
        unknown = [r for r in status.records if self._spreading.table.get(r.id) is None]
        if unknown:
            effects.append(Tell("query-spreading", Learn(tuple(unknown))))
        effects += self.copies.adopt(status)
        effects += self.sources.told(now_us, status)
        for holding in self.owner.claims.holdings:
            effects += self.owner.claims.press(now_us, holding)
        return effects

    def _receive(self, now_us: int, sender: Address, message: Message) -> list[Effect]:
        if type(message) is Put:
            return self.owner.put(now_us, message)
        if type(message) is Done:
            return self._done(sender, message)
        match message:
            case AskRoom():
                return self.owner.partners.asked(sender)
            case Room(free):
                self.owner.partners.offered(sender, free)
            case Overloaded(guest_of):
                return self.owner.partners.overloaded(sender, guest_of)
            case Pass():
                return self.owner.partners.pass_on(sender, message)
            case Passed():
                self.owner.partners.passed(message, self.owner.go_on)
            case Claim():
                return self.answers.claimed(sender, message)
            case Promised():
                return self.owner.claims.promised(now_us, message)
            case Refused():
                return self.owner.claims.refused(now_us, message)
            case Copy():
                return self.copies.copy(sender, message)
            case Copied():
                return self.copies.copied(sender, message)
            case Unknown(queries):
                known = [self._spreading.table.get(q) for q in queries]
                return [Send(sender, Teach(tuple([r for r in known if r is not None])))]
            case Teach(records):
                return [Tell("query-spreading", Learn(records))]
        return []

    def _done(self, sender: Address, message: Done) -> list[Effect]:
        effects: list[Effect] = []
        for number, places in message.items:
            out = self.peer.outs.get(number)
            if out is None:
                continue
            waits = out.waits
            assert isinstance(waits, tuple)
            if out.guest is None:
                self.peer.owners[out.item.bucket] = sender
            elif not self.owner.partners.is_as_before(out.guest, message.host):
                continue
            if waits[0] in ("arriving", "passing"):
                self.peer.forget(number)
                if waits[0] == "arriving":
                    self.owner.partners.arrived(number, self.owner.go_on)
                else:
                    effects += self.owner.partners.passed_one(waits[1], number, message.host)
                continue
            if waits[0] == "task":
                self.peer.forget(number)
                task = waits[1]
                assert isinstance(task, Task)
                self.owner.item_done(task, number, places)
                continue
            misplaced = self.answers.misplaced(out, places)
            if misplaced is not None:
                effects += misplaced
                continue
            self.peer.forget(number)
            if waits[0] == "job":
                assert isinstance(waits[1], Job)
                effects += self.answers.job_done(waits[1], number)
            else:
                self.sources.tuple_done(waits[0], waits[1], number)
        return effects

    def _finish(self, now_us: int, effects: list[Effect]) -> list[Effect]:
        """Send what this step has made, and do at once what is this node's own."""
        peer, owner = self.peer, self.owner
        while True:
            effects += peer.flush(now_us, self.answers.owner_of)
            for address, done in owner.flush_done():
                if address == peer.address:
                    effects += self._done(address, done)
                else:
                    effects.append(Send(address, done))
            effects += owner.found.flush(peer.dataflow.queries)
            if not peer.to_put_here:
                if not owner.has_done and not peer.has_fresh:
                    return effects
                continue
            puts, peer.to_put_here = peer.to_put_here, []
            for put in puts:
                effects += owner.put(now_us, put)
