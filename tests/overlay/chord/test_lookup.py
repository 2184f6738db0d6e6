"""One search."""

import pytest

from thalweg.overlay.chord import lookup
from thalweg.overlay.chord.lookup import Search


@pytest.fixture(autouse=True)
def _small_ring(monkeypatch):
    monkeypatch.setattr(lookup, "id_of", lambda name: int(name[1:]))


def _search(known):
    search = Search(100, "tag")
    search.learn(known)
    return search


def test_the_nearest_before_the_key_is_asked_first():
    search = _search(["n10", "n90", "n50", "n110"])
    assert [search.next("n1") for _ in range(5)] == ["n90", "n50", "n10", "n110", None]


def test_oneself_is_never_asked():
    assert _search(["n5"]).next("n5") is None


def test_answers_that_lead_back_are_ignored():
    search = _search(["n50"])
    search.next("n1")
    search.answered("n50", ["n40", "n60", "n120"])
    assert search.next("n1") == "n60"
    assert search.next("n1") is None
    assert search.hops == 1


def test_the_keys_own_node_is_as_far_as_can_be():
    search = _search(["n100", "n101"])
    assert search.next("n1") == "n101"
