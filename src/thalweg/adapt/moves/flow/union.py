"""The union: takes each instant of each bucket once, adds weights, and says what is final.

Source: D-CAPE 1.1; NETWORK: a union nets. It follows an owner for each range, and learns of the
next in band: all results below τ, then "from τ on at X, epoch e + 1". Its register of whom it
follows is durable, and is where a loss is settled: a fenced range goes on with another owner, a
generation higher, from the last instant that was said.

Promise: every instant is said once, in order, from all buckets; a bucket's results at an instant
come from one owner, or from the two tracks of a parallel move.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from thalweg.adapt.moves.flow.tracks import Part, Stored, Track, decode_events, decode_register
from thalweg.adapt.moves.grouping import Above
from thalweg.adapt.moves.messages.data import (
    FULL,
    GENERATION,
    NEW,
    OLD,
    Given,
    ReadResults,
    Release,
    Results,
    ResultsOf,
    Said,
    Want,
)
from thalweg.adapt.moves.messages.reports import Fence, Followed, Register
from thalweg.adapt.moves.messages.requests import Assign, Final
from thalweg.adapt.moves.operators import Event, Values
from thalweg.adapt.moves.query import Query, Result, bucket_of
from thalweg.adapt.moves.ranges import Range, RangeMap
from thalweg.overlay.protocol import Address, Deliver, Effect, Persist, Send
from thalweg.plan.windows import FOREVER

_encode = msgspec.msgpack.Encoder().encode


class Union:
    def __init__(self, query: Query) -> None:
        self.query = query
        self.said = 0
        self.started = False
        self.parts: RangeMap[Part] = RangeMap(query.buckets, Part(-1, []), self._divided)
        self._events: dict[int, list[Event]] = {}  # ends to come, by when they were stored
        self._above = Above(query.above) if query.above is not None else None

    def restore(self, persisted: dict[str, bytes]) -> None:
        if self._above is not None:
            self._above.restore(persisted)
        for key, value in persisted.items():
            if key == "union":
                stored = decode_register(value)
                self.said, self.started = stored.said, True
                for _, _, _, tracks in stored.parts:
                    for track in tracks:
                        track.frontier = max(track.begin, self.said)
                self.parts.replace_all([(lo, hi, Part(e, t)) for lo, hi, e, t in stored.parts])
            elif key.startswith("ends/"):
                self._events[int(key[5:])] = decode_events(value)

    def _store(self) -> Effect:
        parts = [(lo, hi, part.epoch, part.tracks) for lo, hi, part in self.parts]
        return Persist("union", _encode(Stored(self.said, parts)))

    def _divided(self, part: Part, left: Range, right: Range) -> tuple[Part, Part]:
        def half(side: Range) -> Part:
            rows = [r for r in part.rows if side[0] <= self._bucket(r) < side[1]]
            tracks = [msgspec.structs.replace(t) for t in part.tracks]
            return Part(part.epoch, tracks, rows)

        return half(left), half(right)

    def _bucket(self, result: Result) -> int:
        return bucket_of(result[3], self.query.buckets)

    # --- who is followed ---

    def assign(self, request: Assign) -> list[Effect]:
        if self.started:
            return []
        self.started = True
        self.parts.replace_all(
            [
                (lo, hi, Part(0, [Track(owner, 0, FULL, 0, 0, FOREVER)]))
                for lo, hi, owner in request.parts
            ]
        )
        return [self._store()]

    def fence(self, message: Fence) -> list[Effect]:
        if not self.started:
            return []
        changed = False
        for _, _, part in self.parts.within(message.lo, message.hi):
            if part.epoch == message.epoch:
                self._renew(part, message.owner)
                changed = True
        return [self._store()] if changed else []

    def _renew(self, part: Part, owner: Address) -> None:
        """What was said stays; the rest is this owner's, in the next generation of epochs."""
        part.epoch = (part.epoch // GENERATION + 1) * GENERATION
        part.tracks = [Track(owner, part.epoch, FULL, 0, self.said, FOREVER, self.said)]
        part.rows = []

    def _follow(self, part: Part, track: Track, given: Given, read_upto: int) -> bool:
        """From an instant on, another owner; but what this one has said is not asked for again."""
        if given.epoch <= part.epoch or track.epoch != part.epoch:
            return False
        part.epoch = given.epoch
        kind = FULL
        if given.parallel:
            track.kind, track.tau, kind = OLD, given.at, NEW
        else:
            track.until = given.at
        begin = max(given.at, self.said, read_upto)
        new = Track(given.owner, given.epoch, kind, given.at, given.at, FOREVER, begin)
        part.tracks.append(new)
        return True

    # --- reading ---

    def wants(self) -> list[Effect]:
        by_owner: dict[Address, list[Want]] = {}
        for lo, hi, part in self.parts:
            for t in part.tracks:
                if t.complete < FOREVER:
                    want = Want(lo, hi, t.epoch, t.kind, t.tau, t.begin, t.frontier, t.made)
                    by_owner.setdefault(t.owner, []).append(want)
        return [Send(owner, ReadResults(self.said, tuple(w))) for owner, w in by_owner.items()]

    def receive(self, sender: Address, message: Results) -> list[Effect]:
        changed = False
        for found in message.found:
            for lo, hi, part in self.parts.within(found.lo, found.hi):
                for track in list(part.tracks):
                    if track.owner == sender and track.epoch == found.epoch:
                        changed |= self._take(part, track, (lo, hi), found)
        said = self._say()
        if said:
            return said
        return [self._store()] if changed else []

    def _take(self, part: Part, track: Track, at: Range, found: ResultsOf) -> bool:
        if track.epoch == part.epoch and track.made not in ("", found.made):
            # Its owner has lost it, and with it perhaps the decision to give it away.
            self._renew(part, track.owner)
            return True
        registered = not track.made
        track.made = track.made or found.made
        return self._read(part, track, at, found) or registered

    def _read(self, part: Part, track: Track, at: Range, found: ResultsOf) -> bool:
        if not found.start <= track.frontier <= found.upto:
            return False  # a gap is refused; what is known already is trimmed
        upto = min(found.upto, track.until)
        lo, hi = at
        part.rows += [
            r for r in found.rows if track.frontier <= r[0] < upto and lo <= self._bucket(r) < hi
        ]
        read_upto, track.frontier = track.frontier, upto
        if found.finished and track.kind == OLD and upto < track.until:
            track.until = upto  # lower, where it was made again after its end
            return True
        return found.given is not None and self._follow(part, track, found.given, read_upto)

    def _say(self) -> list[Effect]:
        """All that is final now, netted; then what is no longer needed is let go."""
        upto = min((part.frontier for _, _, part in self.parts), default=0)
        if not self.started or upto <= self.said or upto == FOREVER:
            return []
        net: Counter[tuple[int, Values]] = Counter()
        coming: list[Event] = []
        for _, _, part in self.parts:
            for start, end, row, _, weight in part.rows:
                if start < upto:
                    net[start, row] += weight
                    if end < upto:
                        net[end, row] -= weight
                    elif end < FOREVER:
                        coming.append((end, row, -weight))
            part.rows = [r for r in part.rows if r[0] >= upto]
        effects: list[Effect] = []
        for number, events in list(self._events.items()):
            for instant, row, weight in events:
                if self.said <= instant < upto:
                    net[instant, row] += weight
            if all(instant < upto for instant, _, _ in events):
                del self._events[number]
                effects.append(Persist(f"ends/{number}", None))
        if coming:
            self._events[upto] = coming
            effects.append(Persist(f"ends/{upto}", _encode(coming)))
        since, self.said = self.said, upto
        found = [(instant, row, weight) for (instant, row), weight in net.items() if weight]
        if self._above is not None:
            found, stored = self._above.apply(found)
            effects += stored
        changes = [
            (instant, "+" if weight > 0 else "-", row)
            for instant, row, weight in found
            for _ in range(abs(weight))
        ]
        released = self._let_go()
        effects.append(self._store())
        effects.append(Deliver(Final(since, upto, tuple(sorted(changes, key=_order)))))
        return [*effects, *released]

    def _let_go(self) -> list[Effect]:
        gone: dict[Address, list[tuple[int, int, int]]] = {}
        for lo, hi, part in self.parts:
            for track in [t for t in part.tracks if t.until <= self.said]:
                part.tracks.remove(track)
                gone.setdefault(track.owner, []).append((lo, hi, track.epoch))
        return [Send(owner, Release(tuple(ranges))) for owner, ranges in gone.items()]

    # --- what others hear ---

    def register(self) -> Register:
        return Register(
            tuple(
                Followed(lo, hi, part.epoch, tuple([t.owner for t in part.tracks]))
                for lo, hi, part in self.parts
            )
        )

    def said_so_far(self) -> Said:
        return Said(self.said)


def _order(change: tuple[int, str, Values]) -> tuple[int, bool, Values]:
    return change[0], change[1] == "+", change[2]
