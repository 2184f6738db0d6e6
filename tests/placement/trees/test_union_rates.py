import numpy as np
import pytest

from thalweg.placement.trees.union_rates import union_rates


def test_every_union_is_counted_from_labels():
    labels = np.random.default_rng(1).integers(0, 16, 500)
    found = union_rates(labels, 4, 10.0)
    for classes in range(16):
        assert found[classes] == ((labels & classes) != 0).sum() / 10


def test_a_union_is_between_its_strictest_part_and_the_sum():
    labels = np.array([0b01, 0b10, 0b11, 0b01])
    one, other, both = union_rates(labels, 2, 1.0)[1:]
    assert max(one, other) < both < one + other


def test_nonsense_is_refused():
    with pytest.raises(ValueError, match="beyond 1"):
        union_rates(np.array([4]), 2, 1.0)
    with pytest.raises(ValueError, match="some time"):
        union_rates(np.array([1]), 2, 0.0)
    with pytest.raises(ValueError, match="classes"):
        union_rates(np.array([1]), 40, 1.0)
