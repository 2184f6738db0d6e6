"""What a processor's ranges weigh: where they can be cut, and which key is hot.

Rows that are kept are what D-CAPE measures load by. The policy is the engine's
(`plan/buckets.py`): buckets that weigh much are split, down to what is one key or nearly; a key
that has much of all rows is named, since no cut divides it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from thalweg.adapt.moves.messages.reports import HotKey
from thalweg.adapt.moves.processor.holding import Holding
from thalweg.adapt.moves.query import bucket_of, hash_of
from thalweg.adapt.moves.ranges import Range
from thalweg.plan.buckets import divided, is_hot

MANY = 100  # rows kept here; fewer tell nothing
SHARES = 8  # a bucket is at most an eighth of such a share of the node

Piece = tuple[int, int, int]  # from, to, rows


def rows_by_key(holdings: Iterable[Holding]) -> Counter[int]:
    counts: Counter[int] = Counter()
    for holding in holdings:
        for table in holding.join.tables.values():
            for combination in table.rows():
                counts[combination[2]] += 1
    return counts


def hottest(counts: Counter[int]) -> HotKey | None:
    if not counts:
        return None
    total = counts.total()
    key, rows = max(counts.items(), key=lambda item: (item[1], -item[0]))
    return HotKey(key, rows, total) if is_hot(rows, total, MANY) else None


def cuts(counts: Counter[int], positions: int) -> list[int]:
    """Where the node's buckets begin: hot ones are narrow."""
    weights = sorted((hash_of(key), float(rows)) for key, rows in counts.items())
    return sorted({(bucket.low * positions) >> 64 for bucket in divided(weights, SHARES)})


def pieces(whole: Range, starts: list[int], inside: Counter[int]) -> list[Piece]:
    """A range, cut, with the rows of each piece; `inside` counts them by position."""
    lo, hi = whole
    ours = [lo, *[at for at in starts if lo < at < hi]]
    found = sorted((at, rows) for at, rows in inside.items() if lo <= at < hi)
    return [
        (a, b, sum(rows for at, rows in found if a <= at < b))
        for a, b in zip(ours, [*ours[1:], hi], strict=True)
    ]


def rows_by_position(counts: Counter[int], positions: int) -> Counter[int]:
    inside: Counter[int] = Counter()
    for key, rows in counts.items():
        inside[bucket_of(key, positions)] += rows
    return inside
