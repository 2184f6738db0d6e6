"""What a node answers to claims: whom it has promised its buckets to, and what it sends them.

Invariants: a promise gives way to a higher number alone; who claims under older lists of sources
than were promised under before is refused; what a source retains is sent to every new life, and
nothing is left out that took effect before, whoever spoke for the source then.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from thalweg.overlay.p2p.index_messages import Claim, Item, Place, Promised, Refused, Replay
from thalweg.overlay.p2p.peer import Out, Peer
from thalweg.overlay.p2p.promises import Promise, Promises
from thalweg.overlay.p2p.source import Source
from thalweg.overlay.p2p.sources import Sources
from thalweg.overlay.p2p.tuples import inside
from thalweg.overlay.protocol import Address, Effect, Persist, Send

_encode = msgspec.msgpack.Encoder().encode


class PromisesOnDisk(msgspec.Struct, frozen=True):
    entries: list[Promise]
    versions: dict[str, int]


# Level, whose tuples, and by which lists: a stream that woke since has to be told apart.
Kind = tuple[int, tuple[tuple[str, int], ...], tuple[tuple[str, int], ...]]
JobKey = tuple[str, Kind]  # a life, and what it needs
Asking = dict[JobKey, tuple[Address, Claim]]


@dataclass(slots=True, eq=False)
class Job:
    """A replay, for all claims of one kind that came within a period: when lists change, every
    owner claims anew, and would have all that is retained sent for itself."""

    claims: Asking
    open: dict[int, None]


class Answers:
    def __init__(self, peer: Peer, sources: Sources) -> None:
        self.promises = Promises()
        self._peer = peer
        self._sources = sources
        self._waiting: dict[Kind, Asking] = {}
        self._jobs: dict[JobKey, Job] = {}  # some are one and the same
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
                wrong.append(Send(life.partition("#")[0], self._refused(life, number)))
        return wrong or None

    def claimed(self, owner: Address, claim: Claim) -> list[Effect]:
        if claim.number < self.promises.highest_of(claim.runs, claim.life):
            return []  # overtaken on its way by a later one of the same life
        behind = any(claim.versions.get(s, v) < v for s, v in self._peer.claimed_versions.items())
        highest = self.promises.highest(claim.runs, claim.life)
        if behind or highest >= claim.number:
            return [Send(owner, self._refused(claim.life, highest))]
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
            for asking in self._waiting.values():
                for key in [key for key in asking if key[0] == claim.life]:
                    del asking[key]
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
        kind = (claim.level, tuple([(s.id, s.epoch) for s in lacking]), versions)
        key = (claim.life, kind)
        if key in self._replayed or not lacking:
            return [*effects, Send(owner, self._promised(claim, ()))]
        if key not in self._jobs:
            self._waiting.setdefault(kind, {})[key] = (owner, claim)
        return effects

    def _refused(self, life: str, number: int) -> Refused:
        return Refused(life, number, dict(self._peer.claimed_versions))  # as they are now

    def _open_sources(self) -> list[Source]:
        return [s for s in self._sources.sources.values() if s.speaks]

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
        for tup in (t for source in sources for t in source.taking_part):
            for stem in self._peer.dataflow.stems_for(tup):
                bucket = self._peer.buckets.of(stem.key((tup,)))
                if stem.exact and inside(bucket, claim.runs):
                    found.append(Item(0, stem.name, bucket, (tup,)))
        return tuple(found)

    def replay(self) -> list[Effect]:
        """For those who have claimed since the last time."""
        waiting, self._waiting = self._waiting, {}
        return [e for kind, asking in waiting.items() if asking for e in self._replay(kind, asking)]

    def _replay(self, kind: Kind, asking: Asking) -> list[Effect]:
        """Send all that takes part in intermediate results of this level once more."""
        level, speakers, _ = kind
        job = Job(asking, {})
        self._jobs |= dict.fromkeys(asking, job)
        runs = sorted({run for _, claim in asking.values() for run in claim.runs})
        replay = Replay(level, tuple(runs))
        for source in self._open_sources():
            is_asked = (source.id, source.epoch) in speakers
            if not is_asked or not self._peer.dataflow.feeds_level(source.stream, level):
                continue
            for tup in source.taking_part:
                for stem in self._peer.dataflow.stems_for(tup):
                    number = self._peer.enqueue(stem, (tup,), ("job", job), replay)
                    job.open[number] = None
        return self._finish_job(job)

    def job_done(self, job: Job, number: int) -> list[Effect]:
        job.open.pop(number, None)
        return self._finish_job(job)

    def _finish_job(self, job: Job) -> list[Effect]:
        if job.open:
            return []
        effects: list[Effect] = []
        for key, (owner, claim) in job.claims.items():
            del self._jobs[key]
            self._replayed.add(key)
            _, (_, speakers, _) = key
            effects.append(Send(owner, self._promised(claim, (), speakers)))
        return effects

    def _end_job(self, key: JobKey) -> None:
        job = self._jobs.pop(key)
        del job.claims[key]
        if not job.claims:
            for number in job.open:
                self._peer.forget(number)
