"""Claims: a new owner makes sure of its buckets before it acknowledges anything.

A claim has a number and asks all who speak for sources of streams that exact queries read: to count
on this owner alone, and to send what they retain; then, level by level, to replay what intermediate
results are made of. It is complete when all of them have answered at every level, under the present
versions of the lists of sources. A higher number elsewhere means that another has claimed the same:
the ring says who is right, and whoever owns the buckets by the ring asks again with a higher one.

Invariants: all promises that a complete claim rests on have one number and the same versions, and
are of all sources on the lists of these versions. What a life has had of a source counts as long as
nobody else was promised the bucket since.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from thalweg.overlay.p2p.dataflow import Stem
from thalweg.overlay.p2p.index_messages import Claim, Promised, Refused
from thalweg.overlay.p2p.partners import Partners
from thalweg.overlay.p2p.peer import Peer
from thalweg.overlay.p2p.stream_messages import AskStream, Look
from thalweg.overlay.p2p.tuples import Parts, Runs, inside, without
from thalweg.overlay.protocol import Address, Effect, Send, Tell

if TYPE_CHECKING:
    from thalweg.overlay.p2p.found_rows import Task

Speaker = tuple[str, int]  # a source's id and epoch

_LONG_AGO_US = -(1 << 62)


@dataclass(slots=True, eq=False)
class Holding:
    """Buckets that were claimed together."""

    runs: Runs
    life: str
    number: int = 1
    level: int = 0  # levels below it are complete
    round: int = 0  # how often it has begun anew
    versions: dict[str, int] = field(default_factory=dict)
    promised: dict[int, set[Speaker]] = field(default_factory=dict)  # by level
    had: dict[int, set[Speaker]] = field(default_factory=dict)  # answers that this life ever got
    asked_us: int = _LONG_AGO_US
    held: list[Task] = field(default_factory=list)  # ready, but for the claim

    def begin_anew(self) -> None:
        """All have to confirm; who has, counts again. What was joined before is joined again before
        it is acknowledged: what sources send meanwhile is stored, and meets only what comes."""
        self.promised.clear()
        self.level = 0
        self.round += 1


class Claims:
    def __init__(
        self,
        peer: Peer,
        partners: Partners,
        store: Callable[[Stem, Parts], None],
        go_on: Callable[[Task], None],
    ) -> None:
        self.holdings: list[Holding] = []
        self._peer = peer
        self._partners = partners
        self._store = store  # without joining
        self._go_on = go_on  # with what waited for a claim
        self._lives = 0
        self._life_prefix = ""
        self._looked_us: dict[str, int] = {}

    def start(self, prefix: str) -> None:
        self._life_prefix = prefix

    def holding_of(self, bucket: int) -> Holding | None:
        for holding in self.holdings:
            if inside(bucket, holding.runs):
                return holding
        return None

    def begin(self, bucket: int) -> Holding | None:
        """Of all that the ring gives this node and that it does not hold yet."""
        if not self._peer.owns(bucket):
            return None
        held = [r for h in self.holdings for r in h.runs]
        self._lives += 1
        runs = without(self._peer.owned(), held)
        holding = Holding(runs, f"{self._life_prefix}{self._lives}")
        self.holdings.append(holding)
        return holding

    def is_complete(self, holding: Holding) -> bool:
        return holding.level >= self._peer.dataflow.levels and not self._is_outdated(holding)

    def _is_outdated(self, holding: Holding) -> bool:
        streams = self._peer.dataflow.exact_streams
        return any(holding.versions.get(s, -1) < self.version(s) for s in streams) or any(
            s not in holding.versions for s in streams
        )

    def version(self, stream: str) -> int:
        known = self._peer.statuses.get(stream)
        return -1 if known is None else known.list_version

    def press(self, now_us: int, holding: Holding) -> list[Effect]:
        """Ask who has not promised; go up a level where all have."""
        effects: list[Effect] = []
        streams = self._peer.dataflow.exact_streams
        # By the claims of others this node may know that there is a later list, but not who is on
        # it: to claim by its version would be to do without those who are new there.
        claimed = self._peer.claimed_versions
        unheard = [s for s in streams if self.version(s) < claimed.get(s, 0)]
        if unheard:
            return [e for s in unheard for e in self.look(now_us, s)]
        if self._is_outdated(holding):
            # Everybody has to confirm, so that nobody promises one who knows fewer sources.
            holding.versions = {s: self.version(s) for s in streams}
            holding.begin_anew()
            if self._peer.settings.alerts:
                holding.had.clear()  # a stream may have woken: what rested is to be made again
            holding.asked_us = _LONG_AGO_US
        required = self._required()
        while holding.level < self._peer.dataflow.levels:
            missing = set(required) - holding.promised.get(holding.level, set())
            if not missing and any(d.arriving for d in self._partners.delegations):
                return effects  # what was promised is on its way to a partner
            if missing:
                return effects + self._ask(now_us, holding, {required[m] for m in missing})
            holding.level += 1
            holding.asked_us = _LONG_AGO_US
            self._release(holding)  # replays for others may have waited for this level
        self._release(holding)
        return effects

    def _release(self, holding: Holding) -> None:
        held, holding.held = holding.held, []
        for task in held:
            if not task.dead:
                self._go_on(task)

    def _required(self) -> dict[Speaker, Address]:
        found: dict[Speaker, Address] = {}
        for stream in self._peer.dataflow.exact_streams:
            for source, epoch, address in self._peer.statuses[stream].sources:
                found[source, epoch] = address
        return found

    def _ask(self, now_us: int, holding: Holding, speakers: set[Address]) -> list[Effect]:
        if now_us - holding.asked_us < self._peer.settings.claim_every_us:
            return []
        first_time = holding.asked_us == _LONG_AGO_US
        holding.asked_us = now_us
        effects: list[Effect] = []
        had = tuple(sorted(holding.had.get(holding.level, ())))
        claim = Claim(
            holding.runs, holding.number, holding.life, holding.level, holding.versions, had
        )
        effects += [Send(address, claim) for address in sorted(speakers)]
        if not first_time:
            # Who does not answer may have been replaced.
            for stream in self._peer.dataflow.exact_streams:
                effects += self.look(now_us, stream)
        return effects

    def promised(self, now_us: int, message: Promised) -> list[Effect]:
        holding = next((h for h in self.holdings if h.life == message.life), None)
        if holding is None or holding.number != message.number:
            return []
        if not _covers(message.runs, holding.runs) or message.versions != holding.versions:
            return []
        for item in message.items:
            stem = self._peer.dataflow.stems.get(item.stem)
            if stem is not None and stem.readers and inside(item.bucket, holding.runs):
                self._store(stem, item.parts)
        holding.promised.setdefault(message.level, set()).update(message.sources)
        holding.had.setdefault(message.level, set()).update(message.sources)
        return self.press(now_us, holding)

    def refused(self, now_us: int, message: Refused) -> list[Effect]:
        holding = next((h for h in self.holdings if h.life == message.life), None)
        if holding is None:
            return []
        effects: list[Effect] = []
        for stream, version in message.versions.items():
            if self.version(stream) < version:
                effects += self.look(now_us, stream)
        if message.number >= holding.number:
            # Another has claimed them. The ring says who is right; if it is this node, outbid.
            if without(holding.runs, self._peer.owned()):
                return effects
            # And it forgets whose answers it has had: while the sender counted on the other, the
            # other may have acknowledged tuples that never came here, with all that came of them.
            holding.number = message.number + 1
            holding.begin_anew()
            holding.had.clear()
        elif message.number == 0:
            holding.begin_anew()  # the sender knows of no promise: ask all again
        return effects

    def look(self, now_us: int, stream: str) -> list[Effect]:
        every_us = self._peer.settings.claim_every_us
        if now_us - self._looked_us.get(stream, -every_us) < every_us:
            return []
        self._looked_us[stream] = now_us
        return [Tell("p2p-streams", AskStream(stream, Look()))]


def _covers(wide: Runs, narrow: Runs) -> bool:
    return all(any(a <= c and d <= b for a, b in wide) for c, d in narrow)
