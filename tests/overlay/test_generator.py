"""Random numbers: reproducible, in range, and fair enough."""

from collections import Counter

import pytest

from thalweg.overlay.generator import Generator, seed_of, stable_hash


def test_follows_the_published_sequence_of_splitmix64():
    generator = Generator(1234567)
    assert [generator.bits() for _ in range(3)] == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
    ]


def test_the_same_seed_gives_the_same_numbers():
    assert [Generator(5).bits()] * 2 == [Generator(5).bits() for _ in range(2)]


def test_parts_of_a_seed_differ_by_their_labels_and_their_order():
    seeds = {
        seed_of(1),
        seed_of(1, "a"),
        seed_of(1, "b"),
        seed_of(1, "a", "b"),
        seed_of(1, "b", "a"),
    }
    assert len(seeds) == 5
    assert seed_of(1, "a", 2) == seed_of(1, "a", 2)


def test_a_stable_hash_is_the_same_for_ever():
    assert stable_hash("thalweg") == 0x979BD63D85F1145F


def test_below_reaches_every_value_about_equally_often():
    generator = Generator(3)
    counts = Counter(generator.below(10) for _ in range(10_000))
    assert sorted(counts) == list(range(10))
    assert all(850 < n < 1150 for n in counts.values())


def test_between_includes_both_ends():
    generator = Generator(3)
    assert {generator.between(-1, 1) for _ in range(100)} == {-1, 0, 1}


@pytest.mark.parametrize("bound", [0, -3])
def test_nothing_is_below_zero(bound):
    with pytest.raises(ValueError, match=f"below {bound}"):
        Generator(0).below(bound)


def test_chance_follows_its_probability():
    generator = Generator(11)
    assert 2_300 < sum(generator.chance(0.25) for _ in range(10_000)) < 2_700
    assert not any(generator.chance(0.0) for _ in range(100))
    assert all(generator.chance(1.0) for _ in range(100))


def test_a_sample_has_no_doubles_and_at_most_all():
    generator = Generator(2)
    options = list(range(20))
    found = generator.sample(options, 7)
    assert len(set(found)) == 7
    assert set(found) <= set(options)
    assert sorted(generator.sample(options, 99)) == options
    assert options == list(range(20))


def test_a_shuffle_keeps_what_it_shuffles():
    items = list(range(50))
    Generator(4).shuffle(items)
    assert items != list(range(50))
    assert sorted(items) == list(range(50))
