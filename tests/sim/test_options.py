"""What a seed draws."""

from collections import Counter

import pytest

from thalweg.sim.options import FAULTS, draw


def test_a_seed_draws_the_same_options_again():
    assert draw(7, FAULTS, 3, 12) == draw(7, FAULTS, 3, 12)


def test_every_kind_is_present_in_about_half_of_the_seeds():
    present = Counter(kind for seed in range(400) for kind in draw(seed, FAULTS, 3, 12).present)
    assert set(present) == set(FAULTS)
    assert all(140 < count < 260 for count in present.values())


def test_what_is_not_allowed_is_not_drawn():
    present = {kind for seed in range(100) for kind in draw(seed, ("loss", "crash"), 3, 12).present}
    assert present == {"loss", "crash"}


def test_cluster_sizes_cover_the_range():
    assert {draw(seed, FAULTS, 3, 6).nodes for seed in range(100)} == {3, 4, 5, 6}
    assert draw(1, FAULTS, 3, 6, nodes=40).nodes == 40


def test_options_are_told_in_words():
    lines = "\n".join(line for seed in range(20) for line in draw(seed, FAULTS, 3, 12).lines())
    for words in ("nodes ", "latency ", "loss ", "crash every ", "restart lost after a crash"):
        assert words in lines


def test_an_unknown_fault_is_refused():
    with pytest.raises(ValueError, match="no such fault: earthquake; there are loss, "):
        draw(1, ("earthquake",), 3, 12)
