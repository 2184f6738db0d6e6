import itertools

import numpy as np
import pytest

from thalweg.engine.generators.auctions import Auctions, AuctionSettings
from thalweg.engine.generators.base import BLOCK_ROWS
from thalweg.engine.generators.closings import LONGEST, SHORTEST, Closings, durations

BLOCK_MS = 1000.0
LONGEST_MS = 3500.0  # an item of one block may close in any of the next four slices


def _closes_at(items: np.ndarray) -> np.ndarray:
    opens = items * BLOCK_MS / BLOCK_ROWS
    return (opens + 1 + (items * 2_654_435_761 % 3_499)).astype(np.int64)


def _closings(start: int, slices: int) -> tuple[list[int], np.ndarray, np.ndarray]:
    drawn = itertools.islice(Closings(_closes_at, BLOCK_MS, LONGEST_MS).slices(start), slices)
    firsts, pieces = zip(*drawn, strict=True)
    times, items = (np.concatenate(part) for part in zip(*pieces, strict=True))
    return list(firsts), times, items


def test_closings_are_all_items_sorted_by_time_then_item():
    _, times, items = _closings(0, 6)
    everything = np.arange(10 * BLOCK_ROWS)
    closes = _closes_at(everything)
    order = np.lexsort((everything, closes))[: len(items)]
    assert np.array_equal(items, everything[order])
    assert np.array_equal(times, closes[order])


@pytest.mark.parametrize("start", [0, 1, 70_000, 200_000, 330_000])
def test_slices_are_numbered_the_same_wherever_one_enters(start):
    firsts, _, items = _closings(0, 12)
    from_start, _, later = _closings(start, 1)
    assert from_start[0] in firsts
    assert from_start[0] <= start
    assert np.array_equal(later, items[from_start[0] : from_start[0] + len(later)])


def test_closings_resume_deep_in_the_stream_where_many_blocks_are_open():
    # At this rate the open items span dozens of blocks of openings.
    settings = AuctionSettings(rate=100_000.0, duration=600.0)
    closings = Auctions(settings).batches("ClosedAuction", 300_000)
    expected = next(closings).slice(290_000, 1000)
    assert next(Auctions(settings).batches("ClosedAuction", 1000, start=290_000)) == expected


def test_durations_are_log_normal_around_1_within_limits():
    found = durations(np.linspace(0, 1, 10_001))
    assert (found.min(), found.max()) == (pytest.approx(SHORTEST), pytest.approx(LONGEST))
    assert np.median(found) == pytest.approx(1)
    assert np.log(found).std() == pytest.approx(0.6, rel=0.1)
