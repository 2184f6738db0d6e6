"""What is known of a batch whose source was passed on."""

import pytest

from thalweg.overlay.p2p.source import Batch


@pytest.mark.parametrize(
    ("end", "counts"),
    [(10, False), (5, False), (12, None), (15, True), (20, True), (None, None)],
)
def test_a_batch_counts_if_all_of_it_was_copied(end, counts):
    assert Batch(newest=3, first=10, upto=15).counts(end) is counts
