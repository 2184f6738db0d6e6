"""Words about members: which one is believed, and how long it is news."""

import pytest

from thalweg.overlay.generator import Generator
from thalweg.overlay.view import ALIVE, DOWN, LEFT, SUSPECT, UNHEARD, View, Word


@pytest.fixture
def view():
    return View(4, Generator(1))


@pytest.mark.parametrize(
    ("newer", "older"),
    [
        (Word("a", 1, ALIVE), Word("a", 0, LEFT)),
        (Word("a", 1, SUSPECT), Word("a", 1, ALIVE)),
        (Word("a", 1, DOWN), Word("a", 1, SUSPECT)),
        (Word("a", 0, ALIVE), Word("a", UNHEARD, DOWN)),
    ],
)
def test_whatever_the_order_the_newer_word_stays(newer, older):
    for first, second in ((newer, older), (older, newer)):
        view = View(4, Generator(1))
        view.take(first)
        view.take(second)
        assert view.words["a"] == newer


def test_suspects_are_up_and_the_rest_is_not(view):
    for address, status in (("a", ALIVE), ("b", SUSPECT), ("c", DOWN), ("d", LEFT)):
        view.take(Word(address, 0, status))
    assert view.up() == ["a", "b"]
    assert view.remembered() == ["a", "b", "c"]


def test_news_grows_old(view):
    view.take(Word("a", 0, ALIVE))
    told = 0
    while view.news():
        told += 1
        assert told < 50
    assert told >= 3
    view.take(Word("a", 1, ALIVE))
    assert view.news() == [Word("a", 1, ALIVE)]


def test_a_member_that_is_only_remembered_is_no_news(view):
    view.take(Word("a", UNHEARD, DOWN))
    assert view.news() == []


def test_a_full_view_lets_those_go_that_left(view):
    for address in "abcd":
        view.take(Word(address, 0, LEFT if address == "b" else ALIVE))
    assert view.take(Word("e", 0, ALIVE))
    assert list(view.words) == ["a", "c", "d", "e"]


def test_a_full_view_stays_within_its_capacity_and_takes_new_members_in_now_and_then(view):
    for number in range(100):
        view.take(Word(f"n{number}", 0, ALIVE))
    assert len(view.words) == 4
    assert any(int(a[1:]) > 50 for a in view.words)


def test_a_full_view_ignores_strangers_that_are_down(view):
    for address in "abcd":
        view.take(Word(address, 0, ALIVE))
    assert not view.take(Word("e", 0, DOWN))


def test_up_to_half_of_a_full_view_stays_with_members_that_are_down(view):
    for address, status in (("a", DOWN), ("b", DOWN), ("c", ALIVE), ("d", ALIVE)):
        view.take(Word(address, 0, status))
    for number in range(200):
        view.take(Word(f"n{number}", 0, ALIVE))
    assert list(view.words)[:2] == ["a", "b"]
    assert {"c", "d"}.isdisjoint(view.words)


def test_more_than_half_are_not_kept_for_the_down(view):
    for address in "abcd":
        view.take(Word(address, 0, DOWN))
    for number in range(200):
        view.take(Word(f"n{number}", 0, ALIVE))
    assert len(view.up()) == 2
