"""Digests of tables: a hash per bucket of keys. In 256 bytes two nodes find out what differs."""

from __future__ import annotations

from thalweg.overlay.generator import stable_hash

BUCKETS = 32
_MASK = (1 << 64) - 1


def bucket_of(key: str) -> int:
    return stable_hash(key) % BUCKETS


class Digest:
    """Of all items that were put in and not taken out again, in whatever order."""

    __slots__ = ("_hashes",)

    def __init__(self) -> None:
        self._hashes = [0] * BUCKETS

    def flip(self, bucket: int, item_hash: int) -> None:
        """Put an item in, or take it out."""
        self._hashes[bucket] ^= item_hash

    @property
    def hashes(self) -> tuple[int, ...]:
        return tuple(self._hashes)

    @property
    def hash(self) -> int:
        """Of the whole table: equal tables, equal hashes."""
        whole = 0
        for i, part in enumerate(self._hashes):
            # Rotated by the bucket, lest equal parts of two buckets cancel out.
            whole ^= (part << i | part >> (64 - i)) & _MASK
        return whole

    def differing(self, hashes: tuple[int, ...]) -> list[int]:
        """Buckets that differ; all, where the other side's digest is none."""
        if len(hashes) != BUCKETS:
            return list(range(BUCKETS))
        return [b for b in range(BUCKETS) if self._hashes[b] != hashes[b]]
