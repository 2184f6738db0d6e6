"""Completeness by room: the formula, and its mean for tuples that come at random."""

import random

import pytest

from thalweg.overlay.p2p.sizing import Need, by_chance, completeness, nodes_for, results_by_chance


def needs(memory, *, rate=10.0, window=100.0, ways=2):
    return [Need(f"S{i}", rate, window, memory) for i in range(ways)]


def test_full_room_is_enough_by_the_formula_and_not_quite_by_chance():
    assert completeness(needs(250), 4) == 1.0
    assert nodes_for(needs(250), 1.0) == 4
    # 0.4/√m of each window
    assert by_chance(needs(250), 4) == pytest.approx((1 - 0.4 / 250**0.5) ** 2, abs=0.002)
    assert by_chance(needs(1_000), 1) == pytest.approx((1 - 0.4 / 1_000**0.5) ** 2, abs=0.001)


def test_both_agree_where_room_is_far_from_enough_or_ample():
    for memory in (50, 100, 150, 400):
        assert by_chance(needs(memory), 4) == pytest.approx(
            completeness(needs(memory), 4), abs=0.003
        )


@pytest.mark.parametrize(("mean", "room"), [(3.0, 2), (12.0, 12), (400.0, 400), (600.0, 590)])
def test_the_mean_is_that_of_drawn_windows(mean, room):
    rng = random.Random(1)

    def drawn():
        """Tuples of a window: arrivals until the time is over."""
        at, count = rng.expovariate(mean), 0
        while at < 1.0:
            at, count = at + rng.expovariate(mean), count + 1
        return count

    windows = [drawn() for _ in range(1_500)]
    kept = sum(min(n, room) for n in windows) / sum(windows)
    assert by_chance([Need("S", mean, 1.0, room)], 1) == pytest.approx(kept, abs=0.02)


def test_results_need_one_window_less_than_what_is_stored():
    two = needs(100)
    assert results_by_chance(two, 4) == pytest.approx(0.4, abs=0.001)
    assert by_chance(two, 4) == pytest.approx(0.16, abs=0.001)
    # The newest part is mostly of the shorter window, so the longer one's room counts more.
    mixed = [Need("A", 10.0, 100.0, 100), Need("B", 10.0, 1.0, 100)]
    assert results_by_chance(mixed, 4) == pytest.approx((100 * 0.4 + 1) / 101, abs=0.001)
