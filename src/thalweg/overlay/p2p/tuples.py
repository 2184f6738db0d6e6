"""Tuples on their way between peers, and where on the ring a join value lives.

A value's bucket is a range of the 64 bits of its hash; a bucket belongs, whole, to the ring's owner
of its last hash. Equal values of different number types have one hash, because SQL compares them.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from thalweg.overlay.generator import stable_hash
from thalweg.overlay.routing import ID_BITS, IDS

Value = int | float | str | bool | None
Runs = tuple[tuple[int, int], ...]
Id = tuple[str, int]  # of a tuple: its source, and its number there


class Tup(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A tuple of a base stream: the `seq`-th of its source, at instant `ts`."""

    stream: str
    source: str
    seq: int
    ts: int
    values: tuple[Value, ...]

    @property
    def id(self) -> Id:
        return self.source, self.seq


Parts = tuple[
    Tup, ...
]  # a base tuple, or what was joined so far, in the order of the plan's leaves


def ids_of(parts: Parts) -> tuple[Id, ...]:
    return tuple([(p.source, p.seq) for p in parts])


def key_text(value: Value) -> str:
    """Equal values, equal texts: 1, 1.0 and TRUE's 1 are told apart by kind, not by type."""
    if isinstance(value, bool):
        return f"b{value:d}"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return f"n{value!r}" if isinstance(value, int | float) else f"s{value}"


def hash_of(value: Value) -> int:
    return stable_hash(key_text(value))


class Buckets:
    """A power of two of them, numbered along the ring."""

    __slots__ = ("_known", "_shift", "count")

    def __init__(self, count: int) -> None:
        if count < 1 or count & (count - 1):
            raise ValueError(f"{count} buckets: a power of two is needed, to split the hash evenly")
        self.count = count
        self._shift = ID_BITS - count.bit_length() + 1
        self._known: dict[Value, int] = {}  # hashing is dear, and a join's values come again

    def of(self, value: Value) -> int:
        key = (value, value.__class__) if value.__class__ is not int else value
        found = self._known.get(key)  # type: ignore[arg-type]
        if found is None:
            if len(self._known) > 1 << 16:
                self._known.clear()
            found = self._known[key] = hash_of(value) >> self._shift  # type: ignore[index]
        return found

    def between(self, before: int, own: int) -> Runs:
        """Those that a node at `own` owns, with the node before it at `before`."""
        if before == own:
            return ((0, self.count - 1),)
        first = ((before + 1) % IDS) >> self._shift
        last = ((own + 1) >> self._shift) - 1
        if before < own:
            return ((first, last),) if first <= last else ()
        found = []
        if before + 1 < IDS:
            found.append((first, self.count - 1))
        if last >= 0:
            found.append((0, last))
        return tuple(sorted(found))

    def position(self, bucket: int) -> int:
        """Where on the ring it is owned: at its last hash."""
        return ((bucket + 1) << self._shift) - 1


def without(runs: Sequence[tuple[int, int]], taken: Sequence[tuple[int, int]]) -> Runs:
    """Runs of numbers, first and last included, less others."""
    left = list(runs)
    for a, b in taken:
        left = [
            piece
            for first, last in left
            for piece in ((first, min(last, a - 1)), (max(first, b + 1), last))
            if piece[0] <= piece[1]
        ]
    return tuple(left)


def inside(number: int, runs: Sequence[tuple[int, int]]) -> bool:
    return any(a <= number <= b for a, b in runs)
