"""All entries that a node knows, tombstones too, and their digest.

Merging keeps the higher rank of each key, so tables only grow in knowledge: it is idempotent,
commutative and associative, and no order of messages brings back what was dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from thalweg.overlay.catalogue.entry import Entry, Key
from thalweg.overlay.digests import BUCKETS, Digest, bucket_of
from thalweg.overlay.generator import stable_hash
from thalweg.overlay.protocol import Address


class Mark(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Which version of an entry somebody has."""

    name: str
    owner: Address
    version: int
    disk: int

    @property
    def rank(self) -> tuple[int, int]:
        return self.version, self.disk


class Table:
    __slots__ = ("_buckets", "_by_name", "_digest", "_entries", "_graves", "clock")

    def __init__(self) -> None:
        self.clock = 0  # the highest version seen
        self._entries: dict[Key, Entry] = {}
        self._by_name: dict[str, list[Key]] = {}
        self._graves: dict[Address, int] = {}  # owner -> up to which version
        self._buckets: list[list[Key]] = [[] for _ in range(BUCKETS)]
        self._digest = Digest()

    def merge(self, entry: Entry) -> bool:
        """Take it in; whether it was news."""
        key, known = entry.key, self._entries.get(entry.key)
        if known is not None and known.rank >= entry.rank:
            return False
        bucket = bucket_of(entry.full_name)
        if known is None:
            self._buckets[bucket].append(key)
            self._by_name.setdefault(entry.name, []).append(key)
        else:
            self._digest.flip(bucket, _hash_of(known))
        self._digest.flip(bucket, _hash_of(entry))
        self._entries[key] = entry
        if entry.is_grave:
            self._graves[entry.owner] = entry.version
        self.clock = max(self.clock, entry.version)
        return True

    def get(self, key: Key) -> Entry | None:
        return self._entries.get(key)

    def stands(self, entry: Entry) -> bool:
        """Neither dropped by its owner, nor buried with it."""
        return not entry.dropped and entry.version > self._graves.get(entry.owner, -1)

    def standing(self) -> list[Entry]:
        return [e for e in self._entries.values() if self.stands(e)]

    def named(self, name: str) -> list[Entry]:
        """What stands under a name, of whatever owner."""
        entries = (self._entries[key] for key in self._by_name.get(name, ()))
        return [e for e in entries if self.stands(e)]

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def hashes(self) -> tuple[int, ...]:
        return self._digest.hashes

    @property
    def hash(self) -> int:
        return self._digest.hash

    def differing(self, hashes: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(self._digest.differing(hashes))

    def in_buckets(self, buckets: Iterable[int]) -> list[Entry]:
        return [self._entries[k] for b in buckets if 0 <= b < BUCKETS for k in self._buckets[b]]

    def marks(self, buckets: Iterable[int]) -> tuple[Mark, ...]:
        found = self.in_buckets(buckets)
        return tuple(Mark(e.name, e.owner, e.version, e.disk) for e in found)

    def compare(
        self, buckets: Iterable[int], marks: Iterable[Mark]
    ) -> tuple[list[Entry], list[Key]]:
        """What one who has these marks in these buckets lacks of this table, and this of it."""
        theirs = {(m.name, m.owner): m.rank for m in marks}
        lacking = [e for e in self.in_buckets(buckets) if e.rank > theirs.get(e.key, (-1, -1))]
        wanted = []
        for key, rank in theirs.items():
            known = self._entries.get(key)
            if known is None or known.rank < rank:
                wanted.append(key)
        return lacking, wanted


def _hash_of(entry: Entry) -> int:
    return stable_hash(f"{entry.full_name}\0{entry.version}\0{entry.disk}")
