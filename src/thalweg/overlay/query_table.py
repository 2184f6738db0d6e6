"""The query table of a node (DHTJoin's QT): every query it has heard of, and tombstones.

A dropped query leaves a tombstone, which beats the query whichever comes first. So tables only ever
grow in knowledge: merging is idempotent, commutative and associative, and no order of messages can
bring a query back from the dead. Tombstones are kept for ever: a node may come back after any time
with the query still on its disk. One takes as many bytes as its id.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from thalweg.overlay.digests import BUCKETS, Digest, bucket_of
from thalweg.overlay.generator import stable_hash
from thalweg.overlay.protocol import Message


class Record(Message, frozen=True):
    """A query, or the tombstone of one (without text)."""

    id: str
    text: str
    dropped: bool = False


class QueryTable:
    """Records by id, and their digest."""

    __slots__ = ("_buckets", "_digest", "_records")

    def __init__(self) -> None:
        self._records: dict[str, Record] = {}
        self._buckets: list[list[str]] = [[] for _ in range(BUCKETS)]
        self._digest = Digest()

    def merge(self, record: Record) -> bool:
        """Take it in; whether it was news."""
        if not self.is_news(record):
            return False
        known = self._records.get(record.id)
        bucket = bucket_of(record.id)
        if known is None:
            self._buckets[bucket].append(record.id)
        else:
            self._digest.flip(bucket, _hash_of(known))
        self._digest.flip(bucket, _hash_of(record))
        self._records[record.id] = record
        return True

    def is_news(self, record: Record) -> bool:
        known = self._records.get(record.id)
        return known is None or (record.dropped and not known.dropped)

    def get(self, query: str) -> Record | None:
        return self._records.get(query)

    def __iter__(self) -> Iterator[Record]:
        return iter(self._records.values())

    def __len__(self) -> int:
        return len(self._records)

    @property
    def standing(self) -> list[str]:
        """The queries that were not dropped, by id."""
        return sorted(r.id for r in self._records.values() if not r.dropped)

    @property
    def hashes(self) -> tuple[int, ...]:
        return self._digest.hashes

    @property
    def hash(self) -> int:
        """Of the whole table: equal tables, equal hashes, whatever the order of merging."""
        return self._digest.hash

    def differing(self, hashes: tuple[int, ...]) -> list[int]:
        return self._digest.differing(hashes)

    def in_buckets(self, buckets: Iterable[int]) -> tuple[Record, ...]:
        return tuple(self._records[i] for b in buckets for i in self._buckets[b])

    def beyond(self, buckets: Iterable[int], theirs: Iterable[Record]) -> tuple[Record, ...]:
        """What one who has `theirs` in these buckets would learn from this table."""
        known = {r.id: r.dropped for r in theirs}
        return tuple(r for r in self.in_buckets(buckets) if r.dropped > known.get(r.id, -1))


def _hash_of(record: Record) -> int:
    return stable_hash(f"{record.id}\0{'dropped' if record.dropped else record.text}")
