"""The space of hashes divided by cost: D-CAPE's partition groups (section 3.2).

A *bucket* is a range of hashes, the unit that changes hands: between a node's tasks from tick to
tick, or between nodes. What a bucket costs is observed; buckets that cost much are split, light
neighbours become one again, and owners get runs of buckets of about equal cost. All pure: who owns
what is a function of what was observed.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

SPACE = 1 << 64
BUCKETS = 128  # of equal width, that queries are spread over nodes by; what BUCKET gives
FIRST_BUCKETS = 64
MOST_BUCKETS = 1024
NARROWEST = SPACE >> 24  # what is hot in less than that is one key, or nearly
SMOOTHING = 0.3  # weight of the newest observation
UNEVEN = 1.25  # times the mean: the most that the busiest owner may have before cuts move
BETTER = 0.9  # times the busiest owner's share: what a new division has to reach
MANY = 1_000  # rows that were weighed; fewer tell nothing
HOT = 0.1  # of them: a key that has more is worth a word

Starts = tuple[int, ...]  # where each owner's range begins; it ends where the next one begins


@dataclass(frozen=True, slots=True)
class Bucket:
    """Hashes from `low` to `high`, both included, and what they cost in a tick."""

    low: int
    high: int
    cost: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.high < SPACE:
            raise ValueError(f"no range of hashes: {self.low} to {self.high}")


def even(owners: int) -> Starts:
    """Ranges of equal width."""
    return tuple(SPACE * i // owners for i in range(owners))


def first_buckets() -> tuple[Bucket, ...]:
    starts = even(FIRST_BUCKETS)
    return tuple(Bucket(a, b - 1) for a, b in pairwise((*starts, SPACE)))


def observed(buckets: Sequence[Bucket], costs: Mapping[int, float]) -> tuple[Bucket, ...]:
    """With what was seen now, by a bucket's low end; a bucket that nobody spoke of cost nothing."""
    has_seen = any(g.cost for g in buckets)
    weight = SMOOTHING if has_seen else 1.0
    return tuple(
        replace(g, cost=(1 - weight) * g.cost + weight * costs.get(g.low, 0.0)) for g in buckets
    )


def refined(buckets: Sequence[Bucket], owners: int) -> tuple[Bucket, ...]:
    """Groups of more than an eighth of an owner's share are halved, light pairs become one."""
    limit = sum(g.cost for g in buckets) / owners / 8
    if limit <= 0:
        return tuple(buckets)
    merged: list[Bucket] = []
    for bucket in buckets:
        before = merged[-1] if merged else None
        if before is not None and _are_halves(before, bucket) and _is_light(before, bucket, limit):
            merged[-1] = Bucket(before.low, bucket.high, before.cost + bucket.cost)
        else:
            merged.append(bucket)
    room = MOST_BUCKETS - len(merged)
    found: list[Bucket] = []
    for bucket in merged:
        if bucket.cost > limit and bucket.high - bucket.low >= NARROWEST and room > 0:
            middle = (bucket.low + bucket.high) // 2
            half = bucket.cost / 2  # until it is seen
            found += [Bucket(bucket.low, middle, half), Bucket(middle + 1, bucket.high, half)]
            room -= 1
        else:
            found.append(bucket)
    return tuple(found)


def divided(weights: Sequence[tuple[int, float]], owners: int) -> tuple[Bucket, ...]:
    """By weights of hashes, sorted, that are all known: hot buckets split until they are not."""
    hashes = [hash_ for hash_, _ in weights]
    before = [0.0, *accumulate(weight for _, weight in weights)]

    def weighed(bucket: Bucket) -> Bucket:
        low, high = bisect_left(hashes, bucket.low), bisect_right(hashes, bucket.high)
        return Bucket(bucket.low, bucket.high, before[high] - before[low])

    buckets = tuple(map(weighed, first_buckets()))
    while True:
        finer = tuple(map(weighed, refined(buckets, owners)))
        if finer == buckets:
            return buckets
        buckets = finer


def is_hot(rows: int, of: int, many: int = MANY) -> bool:
    """Whether one key has so much of all rows that no division helps."""
    return of >= many and rows > HOT * of


def _are_halves(a: Bucket, b: Bucket) -> bool:
    """Of a bucket that was split, never of those that there are at first."""
    width = b.high - a.low + 1
    is_pair = a.high - a.low == b.high - b.low and a.low % width == 0
    return is_pair and width <= SPACE // FIRST_BUCKETS


def _is_light(a: Bucket, b: Bucket, limit: float) -> bool:
    return a.cost + b.cost < 0.75 * limit


def cut(buckets: Sequence[Bucket], owners: int) -> Starts:
    """Runs of buckets, each as near to an equal share as buckets allow."""
    total = sum(g.cost for g in buckets)
    if total <= 0 or len(buckets) < owners:
        return even(owners)
    starts, reached, number = [0], 0.0, 0
    for owner in range(1, owners):
        wanted = total * owner / owners
        last = len(buckets) - (owners - owner)  # each of those behind needs a bucket
        while number < last:
            cost = buckets[number].cost
            is_own = starts[-1] == buckets[number].low  # nobody goes without
            if not is_own and reached + cost / 2 > wanted:
                break
            reached, number = reached + cost, number + 1
        starts.append(buckets[number].low)
    return tuple(starts)


def busiest(buckets: Sequence[Bucket], starts: Starts) -> float:
    """The most that an owner has, in shares: 1 is equal. A bucket that is cut counts by width."""
    lows = [g.low for g in buckets]
    before = [0.0, *accumulate(g.cost for g in buckets)]
    total = before[-1]
    if total <= 0:
        return 1.0

    def below(hash_: int) -> float:
        """What lies below a hash costs."""
        at = bisect_right(lows, hash_) - 1
        bucket = buckets[at]
        inside = min(1.0, (hash_ - bucket.low) / (bucket.high - bucket.low + 1))
        return before[at] + bucket.cost * inside

    most = max(below(high) - below(low) for low, high in pairwise((*starts, SPACE)))
    return most / (total / len(starts))


def redivided(buckets: Sequence[Bucket], starts: Starts) -> Starts:
    """The next division: another one only where the present one is uneven and that is better, since
    state that lies across a cut is not merged."""
    now = busiest(buckets, starts)
    if now <= UNEVEN:
        return starts
    found = cut(buckets, len(starts))
    return found if busiest(buckets, found) <= BETTER * now else starts
