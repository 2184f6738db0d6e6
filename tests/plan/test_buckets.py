"""Ranges of hashes by cost: equal shares as far as buckets allow, and no hash without an owner."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from thalweg.plan.buckets import (
    FIRST_BUCKETS,
    MOST_BUCKETS,
    SPACE,
    Bucket,
    busiest,
    cut,
    even,
    first_buckets,
    observed,
    redivided,
    refined,
)

costs = st.lists(st.floats(0, 100), min_size=FIRST_BUCKETS, max_size=FIRST_BUCKETS)
owners = st.integers(1, 16)


def buckets_of(values: list[float]) -> tuple[Bucket, ...]:
    firsts = first_buckets()
    return observed(firsts, {g.low: c for g, c in zip(firsts, values, strict=True)})


def covers_everything(buckets: tuple[Bucket, ...]) -> bool:
    ends = [(g.low, g.high) for g in buckets]
    touching = all(a[1] + 1 == b[0] for a, b in pairwise(ends))
    return touching and ends[0][0] == 0 and ends[-1][1] == SPACE - 1


@given(costs, owners)
def test_every_owner_has_a_range_and_every_hash_an_owner(values, count):
    starts = cut(buckets_of(values), count)
    assert starts[0] == 0
    assert len(starts) == count
    assert all(a < b for a, b in pairwise((*starts, SPACE)))


@given(costs, owners)
def test_an_owner_has_its_share_and_at_most_one_group_more(values, count):
    buckets = buckets_of(values)
    total = sum(g.cost for g in buckets)
    if total > 1e-6:
        share, largest = total / count, max(g.cost for g in buckets)
        most = busiest(buckets, cut(buckets, count)) * share
        assert most <= share + 2 * largest + 1e-6


@given(costs, owners, st.integers(1, 12))
def test_splitting_and_merging_lose_no_hash_and_no_cost(values, count, times):
    buckets = buckets_of(values)
    for _ in range(times):
        again = refined(buckets, count)
        assert covers_everything(again)
        assert len(again) <= max(MOST_BUCKETS, len(buckets))
        assert abs(sum(g.cost for g in again) - sum(g.cost for g in buckets)) < 1e-6
        buckets = again


def test_a_hot_group_is_split_until_its_keys_have_owners_of_their_own():
    """Two keys next to each other in one bucket are all that costs."""
    hot = {SPACE // 64 * 5 + 1_000: 1.0, SPACE // 64 * 6 - 1_000: 1.0}
    buckets, starts = first_buckets(), even(2)
    for _ in range(20):
        seen: dict[int, float] = {}
        for key, cost in hot.items():
            of = next(g for g in buckets if g.low <= key <= g.high)
            seen[of.low] = seen.get(of.low, 0.0) + cost
        buckets = refined(observed(buckets, seen), 2)
        starts = redivided(buckets, starts)
    assert sum(starts[1] <= key for key in hot) == 1


def test_light_halves_become_one_again():
    buckets = first_buckets()
    hot = buckets[7].low
    for _ in range(10):
        buckets = refined(observed(buckets, {hot: 1.0}), 4)
    assert len(buckets) > FIRST_BUCKETS + 3
    for _ in range(60):
        evenly = {g.low: (g.high - g.low) / SPACE for g in buckets}
        buckets = refined(observed(buckets, evenly), 4)
    assert len(buckets) == FIRST_BUCKETS


def test_an_even_division_stays():
    buckets = buckets_of([1.0, 1.1] * 32)
    assert redivided(buckets, even(4)) == even(4)


def test_one_hot_key_moves_no_cut_back_and_forth():
    """No division helps: cuts come to rest."""
    buckets, starts, seen = first_buckets(), even(4), []
    for _ in range(60):
        of = next(g for g in buckets if g.low <= 12_345 <= g.high)
        buckets = refined(observed(buckets, {of.low: 1.0}), 4)
        starts = redivided(buckets, starts)
        seen.append(starts)
    assert len(set(seen[-20:])) == 1
