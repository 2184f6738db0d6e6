"""Queries that were moved rest, longer each time."""

from tests.overlay.distribution.making import running

from thalweg.overlay.distribution.move_backoff import Rests
from thalweg.overlay.distribution.picture import Heading

CALM = 3_000_000


def test_a_move_rests_until_reports_show_it():
    rests = Rests(CALM)
    rests.move(10, "q")
    assert "q" in rests.moving(10 + CALM)
    assert "q" not in rests.moving(10 + 2 * CALM)


def test_each_move_for_less_traffic_makes_the_rest_longer():
    rests = Rests(CALM)
    lengths, now = [], 0
    for _ in range(7):
        rests.tire(now, "q")
        lengths.append(rests.all(now)["q"] - now)
        now += lengths[-1]
        assert "q" not in rests.all(now)
    assert lengths == [CALM << shift for shift in (2, 4, 6, 8, 10, 10, 10)]


def test_a_long_rest_is_forgotten_with_its_moves():
    rests = Rests(CALM)
    rests.tire(0, "q")
    long_after = 400_000_000
    assert rests.all(long_after) == {}
    rests.tire(long_after, "q")
    assert rests.all(long_after)["q"] == long_after + 4 * CALM


def test_where_it_goes_is_known_level_by_level_until_reports_show_it():
    rests, down = Rests(CALM), running("q", "a")
    rests.head(10, "q", 1, Heading(down, "b"))
    rests.head(10, "q", 0, Heading(down, "c"))
    assert rests.heading(10, 1) == {"q": Heading(down, "b")}
    assert rests.heading(10, 0) == {"q": Heading(down, "c")}
    assert rests.heading(10 + 2 * CALM, 0) == {}
    rests.move(20, "q")  # for the bound, wherever there is room
    assert rests.heading(20, 0) == {}
