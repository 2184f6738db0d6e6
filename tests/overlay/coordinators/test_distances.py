from thalweg.overlay.coordinators.distances import Distances


def test_the_least_of_the_last_three_counts():
    distances = Distances()
    assert distances.to("a") == -1
    for trip in (10, 80, 60, 40):
        distances.observe("a", trip)
    assert distances.to("a") == 20


def test_a_clock_that_was_set_back_measures_nothing():
    distances = Distances()
    distances.observe("a", -5)
    assert distances.to("a") == -1


def test_the_unknown_are_asked_soon_again_and_the_known_when_old():
    distances = Distances()
    assert distances.to_ask(0, ["a", "b"], old_us=100, soon_us=10) == ["a", "b"]
    for _ in range(3):
        distances.observe("a", 4)
    assert distances.to_ask(10, ["a", "b"], old_us=100, soon_us=10) == ["b"]
    assert distances.to_ask(100, ["a"], old_us=100, soon_us=10) == ["a"]


def test_the_far_are_forgotten():
    distances = Distances()
    distances.observe("a", 4)
    distances.forget_all_but(["b"])
    assert distances.to("a") == -1


def test_a_crowd_is_asked_bit_by_bit():
    distances = Distances()
    crowd = [f"n{i}" for i in range(40)]
    asked = [distances.to_ask(now, crowd, old_us=100, soon_us=10) for now in range(3)]
    assert [len(a) for a in asked] == [16, 16, 8]
    assert [a for some in asked for a in some] == crowd
