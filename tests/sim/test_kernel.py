"""The heap of things to do."""

import pytest

from thalweg.sim.kernel import Kernel


def test_things_happen_in_order_of_time_then_of_scheduling():
    kernel, seen = Kernel(), []
    for when_us, what in ((5, "c"), (1, "a"), (5, "d"), (3, "b")):
        kernel.at(when_us, seen.append, what)
    kernel.run_until(5)
    assert seen == ["a", "b", "c", "d"]
    assert kernel.events == 4


def test_the_clock_stands_at_the_event_and_at_the_end():
    kernel, seen = Kernel(), []
    kernel.after(7, lambda: seen.append(kernel.now_us))
    kernel.run_until(10)
    assert (seen, kernel.now_us, kernel.pending) == ([7], 10, 0)


def test_what_lies_beyond_the_end_waits():
    kernel, seen = Kernel(), []
    kernel.at(11, seen.append, "later")
    kernel.run_until(10)
    assert seen == []
    kernel.run_until(11)
    assert seen == ["later"]


def test_the_past_is_refused():
    kernel = Kernel()
    kernel.run_until(10)
    with pytest.raises(ValueError, match=r"2 µs in the past .* delays can't be negative"):
        kernel.after(-2, print)
