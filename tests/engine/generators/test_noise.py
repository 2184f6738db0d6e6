import numpy as np
import pytest

from thalweg.engine.generators.noise import between, normal, uniform, zipf

INDEX = np.arange(200_000, dtype=np.int64)


def test_value_depends_on_its_number_alone():
    whole = uniform(7, "price", INDEX)
    assert np.array_equal(whole[1234:1300], uniform(7, "price", INDEX[1234:1300]))


def test_seeds_and_columns_are_independent():
    draws = [uniform(1, "a", INDEX), uniform(2, "a", INDEX), uniform(1, "b", INDEX)]
    assert np.abs(np.corrcoef(draws) - np.eye(3)).max() < 0.01


def test_uniform_fills_the_unit_interval_evenly():
    draws = uniform(3, "u", INDEX)
    assert draws.min() >= 0
    assert draws.max() < 1
    counts, _ = np.histogram(draws, bins=20, range=(0, 1))
    assert np.abs(counts / len(INDEX) - 0.05).max() < 0.002


def test_negative_seed_is_a_seed():
    assert not np.array_equal(uniform(-1, "u", INDEX), uniform(1, "u", INDEX))


def test_normal_has_mean_0_variance_1_and_tails():
    draws = normal(3, "n", INDEX)
    assert abs(draws.mean()) < 0.01
    assert abs(draws.std() - 1) < 0.01
    assert abs(np.mean(np.abs(draws) > 1.96) - 0.05) < 0.003


@pytest.mark.parametrize("skew", [0.5, 1.0, 1.1, 2.0])
def test_zipf_shares_fall_as_a_power_of_the_rank(skew):
    ranks = zipf(skew, 1000, uniform(5, "z", INDEX))
    assert ranks.min() == 0
    assert ranks.max() <= 999
    # The law holds for whole ranges of ranks: compare [1, 2) to [8, 16) in the continuous form.
    bounds = np.asarray([1.0, 2.0, 8.0, 16.0])
    mass = np.log(bounds) if skew == 1 else bounds ** (1 - skew) / (1 - skew)
    expected = (mass[1] - mass[0]) / (mass[3] - mass[2])
    measured = np.mean(ranks == 0) / np.mean((ranks >= 7) & (ranks < 15))
    assert measured == pytest.approx(expected, rel=0.1)


def test_zipf_of_skew_0_is_uniform():
    counts = np.bincount(zipf(0.0, 10, uniform(5, "z", INDEX)), minlength=10)
    assert np.abs(counts / len(INDEX) - 0.1).max() < 0.005


def test_zipf_takes_a_size_per_row():
    sizes = np.tile(np.asarray([1, 2, 50]), 1000)
    ranks = zipf(0.9, sizes, uniform(5, "z", INDEX[:3000]))
    assert np.all(ranks < sizes)
    assert ranks.max() > 25


def test_between_includes_both_ends():
    assert set(between(3, 5, uniform(1, "b", INDEX))) == {3, 4, 5}
