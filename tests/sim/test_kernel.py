"""The calendar of things to do."""

import gc
from heapq import heappop, heappush

import pytest

from thalweg.overlay.generator import Generator
from thalweg.sim.kernel import OBJECTS_BETWEEN_COLLECTIONS, PAGE_BITS, Kernel

PAGE_US = 1 << PAGE_BITS


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


def test_the_calendar_keeps_the_order_of_one_heap_across_pages():
    """Things that schedule more, for now, for the open page, for the next ones, and far ahead."""
    delays = Generator(5)
    kernel, seen, heap = Kernel(), [], []
    scheduled = 0

    def schedule(now_us):
        nonlocal scheduled
        reach_us = delays.choice((1, 50, PAGE_US, 40 * PAGE_US))
        when_us = now_us + delays.below(reach_us)
        scheduled += 1
        heappush(heap, (when_us, scheduled))
        kernel.at(when_us, happen, scheduled)

    def happen(number):
        seen.append((kernel.now_us, number))
        if scheduled < 3_000:
            for _ in range(delays.below(3)):
                schedule(kernel.now_us)

    for _ in range(200):
        schedule(0)
    while kernel.pending:
        kernel.run_until(kernel.now_us + delays.below(3 * PAGE_US))
        if scheduled < 3_000:
            schedule(kernel.now_us)
    assert len(seen) == scheduled >= 3_000
    assert seen == [heappop(heap) for _ in range(scheduled)]


def test_garbage_is_collected_rarely_while_a_calendar_runs_and_as_before_afterwards():
    kernel, seen = Kernel(), []
    before = gc.get_threshold()
    kernel.at(1, lambda: seen.append(gc.get_threshold()[0]))
    kernel.at(2, lambda: [][0])
    kernel.run_until(1)
    assert seen == [OBJECTS_BETWEEN_COLLECTIONS]
    assert gc.get_threshold() == before
    with pytest.raises(IndexError):
        kernel.run_until(2)
    assert gc.get_threshold() == before
