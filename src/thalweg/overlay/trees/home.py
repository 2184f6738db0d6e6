"""A stream at its home: the journal of what was decided, and the rows that follow from it.

What is due for whom is decided once, here, on the unfiltered stream (`plan/coherency`). Every value
and every start of a class is an entry of the journal; after a restart the same rows come out of it.
Each row has an instant of its own: its place in the publication.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from thalweg.overlay.protocol import Address
from thalweg.overlay.trees.stream import Batch, Line, Reader, Spec, Tree
from thalweg.plan.coherency.classes import KeyClasses, Start
from thalweg.plan.coherency.tolerance import Update


class _Entry(msgspec.Struct, frozen=True):
    value: int | None = None
    spec: Spec | None = None


class Home:
    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.lines: list[Line] = []
        self.readers: dict[Address, Reader] = {}
        self._journal: list[_Entry] = [_Entry()]  # the first one says that there is a stream
        self._written = 0
        self._classes: dict[Spec, int] = {}
        self._keys = KeyClasses()
        self._last: dict[int, int] = {}  # class -> the instant of its last row
        self.counts: Counter[tuple[int, ...]] = Counter()  # rows by label, for statistics

    @classmethod
    def replayed(cls, tree: Tree, entries: Iterable[bytes]) -> Home:
        home = cls(tree)
        for packed in entries:
            entry = msgspec.msgpack.decode(packed, type=_Entry)
            if entry.value is not None:
                home.publish(entry.value)
            elif entry.spec is not None:
                home.open(entry.spec)
        home._written = len(home._journal)
        return home

    def to_journal(self) -> list[tuple[int, bytes]]:
        """Entries that are still to be written, with their numbers."""
        found = [
            (n, msgspec.msgpack.encode(self._journal[n]))
            for n in range(self._written, len(self._journal))
        ]
        self._written = len(self._journal)
        return found

    def publish(self, value: int) -> tuple[Line, ...]:
        self._journal.append(_Entry(value=value))
        before = self._keys.newest
        number = 0 if before is None else before.number + 1
        due = self._keys.arrive(Update(number, number, value))
        return tuple(self._say(int(d.row.value), d.classes) for d in due)

    def open(self, spec: Spec) -> tuple[int, tuple[Line, ...] | None]:
        """The class of a tolerance, and what its start says; None where it had started before."""
        if spec in self._classes:
            return self._classes[spec], None
        self._journal.append(_Entry(spec=spec))
        klass = self._classes[spec] = len(self._classes)
        newest = self._keys.newest
        self._keys.start(Start(klass, spec.tolerance(), newest))
        if newest is None:
            return klass, ()
        return klass, (self._say(int(newest.value), (klass,)),)  # what it holds, to begin with

    def begins(self, klass: int) -> int:
        """Where a newcomer to a class begins: with what the class holds."""
        return self._last.get(klass, len(self.lines))

    def _say(self, value: int, classes: tuple[int, ...]) -> Line:
        line = Line(len(self.lines), value, classes)
        self.lines.append(line)
        self.counts[classes] += 1
        for klass in classes:
            self._last[klass] = line.at
        return line

    # --- readers ---

    def subscribe(self, now_us: int, who: Address, classes: tuple[int, ...], start: int) -> None:
        self.readers[who] = Reader(now_us, classes, start)

    def forget_silent(self, since_us: int) -> None:
        for who in [w for w, r in self.readers.items() if r.heard_us < since_us]:
            del self.readers[who]

    def batch(self, to: Address, even_nothing: bool) -> Batch | None:
        reader = self.readers[to]
        start, upto = reader.sent, len(self.lines)
        if start >= upto and not even_nothing:
            return None
        reader.sent = max(start, upto)
        wanted = set(reader.classes)
        lines = tuple(x for x in self.lines[start:upto] if not wanted.isdisjoint(x.classes))
        return Batch(reader.classes, start, max(start, upto), lines)
