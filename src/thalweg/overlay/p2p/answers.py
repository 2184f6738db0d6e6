"""What a node answers to claims: whom it has promised its buckets to, and what it sends them.

Invariants: a promise gives way to a higher number alone; who claims under older lists of sources
than were promised under before is refused; what a source retains is sent to every new life.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from thalweg.overlay.p2p.index_messages import Claim, Item, Place, Promised, Refused, Replay
from thalweg.overlay.p2p.peer import Out, Peer
from thalweg.overlay.p2p.promises import Promise, Promises
from thalweg.overlay.p2p.source import Source, Sources
from thalweg.overlay.p2p.tuples import inside
from thalweg.overlay.protocol import Address, Effect, Persist, Send

_encode = msgspec.msgpack.Encoder().encode


class PromisesOnDisk(msgspec.Struct, frozen=True):
    entries: list[Promise]
    versions: dict[str, int]


@dataclass(slots=True)
class Job:
    """A replay for a claim of a higher level."""

    claim: Claim
    owner: Address
    open: dict[int, None]


# Life, level, whose tuples, and by which lists: a stream that woke since has to be told apart.
JobKey = tuple[str, int, tuple[tuple[str, int], ...], tuple[tuple[str, int], ...]]


class Answers:
    def __init__(self, peer: Peer, sources: Sources) -> None:
        self.promises = Promises()
        self._peer = peer
        self._sources = sources
        self._jobs: dict[JobKey, Job] = {}
        self._replayed: set[JobKey] = set()

    def owner_of(self, bucket: int) -> Address | None:
        promise = self.promises.of(bucket)
        return None if promise is None else promise.owner

    def misplaced(self, out: Out, places: tuple[Place, ...]) -> list[Effect] | None:
        """None if all owners are those that this node has promised the buckets to.

        Otherwise who claims too little is told so: the ring may have come back to it meanwhile.
        """
        if not out.stem.exact:
            return None
        wrong: list[Effect] = []
        for bucket, life in places:
            promise = self.promises.of(bucket)
            if promise is None or promise.life != life:
                number = 0 if promise is None else promise.number
                wrong.append(
                    Send(life.partition("#")[0], Refused(life, number, self._peer.claimed_versions))
                )
        return wrong or None

    def claimed(self, owner: Address, claim: Claim) -> list[Effect]:
        behind = any(claim.versions.get(s, v) < v for s, v in self._peer.claimed_versions.items())
        highest = self.promises.highest(claim.runs, claim.life)
        if behind or highest >= claim.number:
            return [Send(owner, Refused(claim.life, highest, self._peer.claimed_versions))]
        effects: list[Effect] = []
        was_its_own = self.promises.all_of(claim.runs, claim.life)
        for stream, version in claim.versions.items():
            self._peer.claimed_versions[stream] = max(
                version, self._peer.claimed_versions.get(stream, 0)
            )
        if not was_its_own:
            self._replayed = {key for key in self._replayed if key[0] != claim.life}
            for key in [key for key in self._jobs if key[0] == claim.life]:
                self._end_job(key)
        self.promises.give(claim.runs, claim.number, owner, claim.life)
        on_disk = PromisesOnDisk(self.promises.entries, self._peer.claimed_versions)
        effects.append(Persist("promises", _encode(on_disk)))
        lacking = (
            self._open_sources()
            if not was_its_own
            else [s for s in self._open_sources() if (s.id, s.epoch) not in claim.have]
        )
        if claim.level == 0:
            return [*effects, Send(owner, self._promised(claim, self._retained(claim, lacking)))]
        versions = tuple(sorted(claim.versions.items()))
        key = (claim.life, claim.level, tuple([(s.id, s.epoch) for s in lacking]), versions)
        if key in self._replayed or not lacking:
            return [*effects, Send(owner, self._promised(claim, ()))]
        if key not in self._jobs:
            effects += self._replay(key, owner, claim, lacking)
        return effects

    def _open_sources(self) -> list[Source]:
        return [s for s in self._sources.sources.values() if s.is_open]

    def _promised(
        self, claim: Claim, items: tuple[Item, ...], replayed: tuple[tuple[str, int], ...] = ()
    ) -> Promised:
        """For all that are open; at the end of a replay, for those that were replayed, or had."""
        mine = tuple([(s.id, s.epoch) for s in self._open_sources()])
        if replayed:
            mine = tuple([m for m in mine if m in replayed or m in claim.have])
        return Promised(
            claim.runs, claim.life, claim.number, claim.level, mine, claim.versions, items
        )

    def _retained(self, claim: Claim, sources: list[Source]) -> tuple[Item, ...]:
        found = []
        for kept in (k for source in sources for k in source.log.values() if k.indexed):
            for stem in self._peer.dataflow.stems_for(kept.tup):
                bucket = self._peer.buckets.of(stem.key((kept.tup,)))
                if stem.exact and inside(bucket, claim.runs):
                    found.append(Item(0, stem.name, bucket, (kept.tup,)))
        return tuple(found)

    def _replay(
        self, key: JobKey, owner: Address, claim: Claim, sources: list[Source]
    ) -> list[Effect]:
        """Send all that takes part in intermediate results of this level once more."""
        job = self._jobs[key] = Job(claim, owner, {})
        replay = Replay(claim.level, claim.runs)
        for source in sources:
            if not self._peer.dataflow.feeds_level(source.stream, claim.level):
                continue
            for kept in source.log.values():
                if kept.indexed:
                    for stem in self._peer.dataflow.stems_for(kept.tup):
                        number = self._peer.enqueue(stem, (kept.tup,), ("job", key), replay)
                        job.open[number] = None
        return self._finish_job(key)

    def job_done(self, key: JobKey, number: int) -> list[Effect]:
        if key not in self._jobs:
            return []
        self._jobs[key].open.pop(number, None)
        return self._finish_job(key)

    def _finish_job(self, key: JobKey) -> list[Effect]:
        job = self._jobs[key]
        if job.open:
            return []
        del self._jobs[key]
        self._replayed.add(key)
        return [Send(job.owner, self._promised(job.claim, (), key[2]))]

    def _end_job(self, key: JobKey) -> None:
        for number in self._jobs.pop(key).open:
            self._peer.forget(number)
