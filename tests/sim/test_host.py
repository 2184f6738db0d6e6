"""A machine's clock."""

import pytest

from thalweg.sim.host import Clock


def test_a_right_clock_shows_the_time():
    assert Clock().local_us(123) == 123
    assert Clock().true_delay_us(123) == 123


def test_a_slow_clock_shows_less_and_takes_longer():
    clock = Clock(offset_us=100, drift_ppm=-500_000)
    assert clock.local_us(1_000) == 600
    assert clock.true_delay_us(1_000) == 2_000


@pytest.mark.parametrize("drift_ppm", [-900_000, -20_000, 0, 20_000, 2_000_000])
def test_a_clock_never_runs_backwards(drift_ppm):
    clock = Clock(drift_ppm=drift_ppm)
    shown = [clock.local_us(t) for t in range(0, 10_000, 7)]
    assert shown == sorted(shown)
