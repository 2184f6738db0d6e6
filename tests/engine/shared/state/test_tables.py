"""Searching sorted segments, and merging them."""

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from thalweg.engine.shared.frames import E, H, T, W
from thalweg.engine.shared.state import tables

HASHES = st.lists(st.integers(0, 20), min_size=1, max_size=40).map(
    lambda found: np.array(sorted(found), dtype=np.uint64)
)


@given(HASHES, HASHES, st.integers(1, 7))
def test_matches_are_all_pairs_of_equal_hashes_whatever_the_piece_size(stored, probing, piece):
    before, tables.PAIRS_AT_ONCE = tables.PAIRS_AT_ONCE, piece
    try:
        found = [
            (int(p), int(s))
            for left, right in tables.matches(stored, probing)
            for p, s in zip(left, right, strict=True)
        ]
    finally:
        tables.PAIRS_AT_ONCE = before
    expected = [
        (p, s) for p in range(len(probing)) for s in range(len(stored)) if probing[p] == stored[s]
    ]
    assert sorted(found) == expected


def test_rows_that_add_up_to_nothing_are_gone_after_a_merge():
    frame = pl.DataFrame({"c0": [1, 1, 2, None, None], "_n": [3, -3, 1, 1, 1], H: [5, 5, 6, 7, 7]})
    merged = tables.merge_by(["c0", H], ["_n"])(frame)
    assert sorted(merged.rows(), key=str) == [(2, 1, 6), (None, 2, 7)]


def test_intervals_of_the_past_merge_whenever_they_began():
    frame = pl.DataFrame(
        {
            "c0": ["a", "a", "b", "c"],
            T: [1, 4, 2, 9],
            E: [20, 20, 5, 30],
            W: [1, -1, 1, 1],
            H: pl.Series([1, 1, 2, 3], dtype=pl.UInt64),
        }
    )
    merged = tables.merge_intervals(["c0"], frontier=8)(frame)
    assert merged.select("c0", T, E, W).rows() == [("c", 9, 30, 1)]


def test_sizes_within_a_factor_of_eight_are_one_tier():
    assert tables.tier(1) == tables.tier(1023) == 0
    assert tables.tier(1 << 13) == tables.tier((1 << 15) - 1)
    assert tables.tier(1 << 17) > tables.tier(1 << 13)
