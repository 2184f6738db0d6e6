"""Medians and splits, against brute force."""

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.overlay.coordinators.clustering import ranked, split, total


def on_a_plane(points):
    at = {f"n{i:03}": p for i, p in enumerate(points)}

    def distance(a, b):
        return abs(at[a][0] - at[b][0]) + abs(at[a][1] - at[b][1])

    return list(at), distance


PLANES = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=6, max_size=9)


def test_the_median_comes_first_and_ties_go_by_name():
    members, distance = on_a_plane([(0, 0), (10, 0), (20, 0), (90, 0)])
    assert ranked(members, distance) == ["n001", "n002", "n000", "n003"]
    assert total("n001", members, distance) == 10 + 10 + 80


def test_two_heaps_are_told_apart():
    members, distance = on_a_plane([(0, 0), (1, 0), (2, 0), (70, 0), (71, 0), (72, 0)])
    one, other = split(members, 3, distance)
    assert {one.members, other.members} == {("n000", "n001", "n002"), ("n003", "n004", "n005")}
    assert {one.centre, other.centre} == {"n001", "n004"}


@settings(max_examples=60, deadline=None)
@given(PLANES, st.integers(1, 3))
def test_a_split_is_balanced_complete_and_led_by_medians(points, least):
    members, distance = on_a_plane(points)
    halves = split(members, least, distance)
    assert sorted(m for half in halves for m in half.members) == members
    for half in halves:
        assert len(half.members) >= least
        assert half.centre == ranked(half.members, distance)[0]


def larger_radius(part, members, distance):
    """The least that centres among its own members can give to both parts."""
    parts = (part, [m for m in members if m not in part])
    return max(min(max(distance(c, m) for m in p) for c in p) for p in parts)


@settings(max_examples=40, deadline=None)
@given(PLANES)
def test_radii_are_near_the_best_of_all_cuts(points):
    members, distance = on_a_plane(points)
    least = len(members) // 3
    found = split(members, least, distance)[0].members
    sizes = range(least, len(members) - least + 1)
    best = min(
        larger_radius(part, members, distance)
        for size in sizes
        for part in combinations(members, size)
    )
    assert larger_radius(found, members, distance) <= 2 * best


def test_too_few_can_not_be_split():
    members, distance = on_a_plane([(0, 0)] * 5)
    with pytest.raises(ValueError, match="5 members can't be cut in two parts of 3"):
        split(members, 3, distance)


def test_a_crowd_is_cut_soon_and_well():
    """Two heaps of 300: found between poles of a sample, without trying 180,000 pairs."""
    points = [(i % 20, i // 20 % 20) for i in range(300)]
    members, distance = on_a_plane(points + [(x + 500, y) for x, y in points])
    asked = 0

    def counting(a, b):
        nonlocal asked
        asked += 1
        return distance(a, b)

    one, other = split(members, 6, counting)
    assert {len(one.members), len(other.members)} == {300}
    assert asked < 2_000_000
