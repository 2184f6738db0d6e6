"""A stream at a node that is not its home: what it has of it, for itself and for those below.

A relay has all rows in [start, upto) that any of its classes needs. If somebody below needs a new
class, or an earlier instant, it begins anew from the earliest instant that anybody needs: what
it drops, those above have, and at last the home. So nothing here has to be kept but the reader's
own place.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from thalweg.overlay.protocol import Address
from thalweg.overlay.trees.stream import Batch, Line, Reader, Spec, Tree


class _Kept(msgspec.Struct, frozen=True):
    tree: Tree
    spec: Spec | None
    klass: int | None
    begins: int
    place: int


class Relay:
    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.spec: Spec | None = None
        self.klass: int | None = None  # of the own reader
        self.begins = 0
        self.place = 0  # of the own reader: all before it was delivered
        self.publisher: Address | None = None
        self.former: Address | None = None  # goes on until the publisher serves
        self.readers: dict[Address, Reader] = {}
        self.start = self.upto = 0
        self.lines: list[Line] = []
        self._has: frozenset[int] = frozenset()
        self.counts: Counter[tuple[int, ...]] = Counter()  # rows by label, for statistics

    @classmethod
    def restored(cls, packed: bytes) -> Relay:
        kept = msgspec.msgpack.decode(packed, type=_Kept)
        relay = cls(kept.tree)
        relay.spec, relay.klass, relay.begins = kept.spec, kept.klass, kept.begins
        relay.place = kept.place
        return relay

    def remembered(self) -> bytes:
        kept = _Kept(self.tree, self.spec, self.klass, self.begins, self.place)
        return msgspec.msgpack.encode(kept)

    def begin(self, klass: int, begins: int) -> None:
        self.klass, self.begins, self.place = klass, begins, begins

    @property
    def classes(self) -> tuple[int, ...]:
        found = {c for r in self.readers.values() for c in r.classes}
        if self.klass is not None:
            found.add(self.klass)
        return tuple(sorted(found))

    def _needed_from(self) -> int:
        """The earliest instant that anybody here or below still needs."""
        needs = [r.start for r in self.readers.values()]
        if self.klass is not None:
            needs.append(self.place)
        return min(needs, default=self.upto)

    def choose_start(self) -> None:
        """Before asking above: go on where it is, or begin anew."""
        wanted, needed = frozenset(self.classes), self._needed_from()
        if not wanted <= self._has or needed < self.start:
            self.start = self.upto = needed
            self.lines = []
            for reader in self.readers.values():
                reader.sent = reader.start
        elif needed > self.start:
            self.start = needed
            self.lines = [x for x in self.lines if x.at >= needed]
        self._has = wanted

    # --- readers below ---

    def subscribe(self, now_us: int, who: Address, classes: tuple[int, ...], start: int) -> None:
        self.readers[who] = Reader(now_us, classes, start)

    def forget_silent(self, since_us: int) -> None:
        for who in [w for w, r in self.readers.items() if r.heard_us < since_us]:
            del self.readers[who]

    def can_serve(self, who: Address) -> bool:
        reader = self.readers[who]
        return self._has.issuperset(reader.classes) and self.start <= reader.sent

    def batch(self, to: Address, even_nothing: bool) -> Batch | None:
        reader = self.readers[to]
        start, upto = reader.sent, self.upto
        if not self.can_serve(to) or (start >= upto and not even_nothing):
            return None
        reader.sent = max(start, upto)
        wanted = set(reader.classes)
        lines = tuple(
            x for x in self.lines if start <= x.at < upto and not wanted.isdisjoint(x.classes)
        )
        return Batch(reader.classes, start, max(start, upto), lines)

    # --- from above ---

    def take(
        self, classes: tuple[int, ...], start: int, upto: int, lines: tuple[Line, ...]
    ) -> bool:
        """Whether the batch fits: all classes that are needed, and no gap."""
        if not self._has or not self._has.issubset(classes) or start > self.upto:
            return False
        fresh = [x for x in lines if x.at >= self.upto and not self._has.isdisjoint(x.classes)]
        self.lines += fresh
        self.counts.update(x.classes for x in fresh)
        self.upto = max(self.upto, upto)
        return True

    def read(self) -> list[tuple[int, int]] | None:
        """What the own reader has not had; None if nothing moved on."""
        if self.klass not in self._has or not self.start <= self.place < self.upto:
            return None
        found = [
            (x.at, x.value) for x in self.lines if x.at >= self.place and self.klass in x.classes
        ]
        self.place = self.upto
        return found
