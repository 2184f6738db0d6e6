"""Bytes pass as fast as they may, and no faster."""

from __future__ import annotations

import pytest

from thalweg.runtime.data.pace import Pace


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def sleep(self, for_s: float) -> None:
        self.now += for_s


def test_so_many_bytes_pass_in_a_second() -> None:
    clock = Clock()
    pace = Pace(1_000.0, lambda: clock.now, clock.sleep)
    for _ in range(50):
        pace.take(100)
    assert clock.now == pytest.approx(105.0, abs=0.05)


def test_what_was_not_used_is_not_made_up_for() -> None:
    clock = Clock()
    pace = Pace(1_000.0, lambda: clock.now, clock.sleep)
    pace.take(1_000)
    clock.now += 60
    before = clock.now
    for _ in range(10):
        pace.take(100)
    assert clock.now - before == pytest.approx(1.0, abs=0.05)


def test_without_a_rate_nobody_waits() -> None:
    clock = Clock()
    Pace(None, lambda: clock.now, clock.sleep).take(1 << 40)
    assert clock.now == 100.0
