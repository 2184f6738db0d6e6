import numpy as np
import pytest

from thalweg.engine.generators.noise import normal
from thalweg.engine.generators.walk import LEVELS, bridge, walk_at


def test_walk_starts_at_0_and_is_the_same_however_it_is_reached():
    assert walk_at(1, "w", 0) == 0
    assert walk_at(1, "w", 12_345) == walk_at(1, "w", 12_345)
    assert walk_at(1, "w", 12_345) != walk_at(2, "w", 12_345)


def test_steps_are_normal_with_variance_1_and_independent():
    values = np.asarray([walk_at(5, "w", step) for step in range(1000, 2500)])
    steps = np.diff(values)
    assert abs(steps.mean()) < 0.08
    assert steps.std() == pytest.approx(1, abs=0.05)
    assert abs(np.corrcoef(steps[:-1], steps[1:])[0, 1]) < 0.08


def test_variance_grows_with_the_number_of_steps():
    far = [walk_at(seed, "w", 10_000) for seed in range(400)]
    assert np.std(far) == pytest.approx(100, rel=0.12)


def test_step_outside_the_walk_is_refused():
    with pytest.raises(ValueError, match="steps 0 to"):
        walk_at(1, "w", (1 << LEVELS) + 1)


def test_bridge_goes_from_start_to_end_as_a_brownian_path():
    times = np.linspace(0, 1, 5)[1:-1]
    draws = normal(3, "b", np.arange(4 * 4000, dtype=np.int64)).reshape(4000, 4)
    paths = np.asarray([bridge(times, row, 10.0, 14.0) for row in draws])
    assert np.allclose(paths.mean(axis=0), [11, 12, 13], atol=0.05)
    # A bridge's variance at t is t (1 - t).
    assert np.allclose(paths.var(axis=0), [3 / 16, 1 / 4, 3 / 16], rtol=0.1)


def test_bridge_ends_where_it_must():
    path = bridge(np.asarray([0.5, 1.0]), np.asarray([1.0, -2.0, 3.0]), 2.0, 5.0)
    assert path[-1] == pytest.approx(5.0)
