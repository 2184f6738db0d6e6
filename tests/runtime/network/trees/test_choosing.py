"""Who hangs under whom, from what was measured."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.runtime.network.trees.choosing import CHOICES, Adaptive, Member, Nearest

HOME = Member("home", "paris")


def members(count: int, site: str, **options: object) -> list[Member]:
    return [
        Member(f"{site}{i}", site, {"home": 10.0 + i}, 100.0, 0.01, **options) for i in range(count)
    ]  # type: ignore[arg-type]


def test_a_way_that_nobody_has_measured_is_said_in_words() -> None:
    (told,) = Nearest().why(HOME, [Member("m", "paris")], "m")
    assert "by a way that nobody has measured yet" in told


def test_a_stream_comes_into_a_site_once() -> None:
    found = Nearest().parents(HOME, [*members(3, "lyon"), *members(2, "rome")])
    assert [n for n, parent in found.items() if parent == "home"] == ["lyon0", "rome0"]
    assert found["lyon2"].startswith("lyon")


def test_by_way_of_a_broker_if_there_is_one() -> None:
    broker = Member("b", "lyon", {"home": 50.0}, is_broker=True)
    found = Nearest().parents(HOME, [*members(3, "lyon"), broker])
    assert found["b"] == "home"
    assert found["lyon0"] == "b"


def test_nobody_but_the_home_has_too_many_children() -> None:
    near = [Member(f"r{i}", "paris", {"home": 1.0}) for i in range(40)]
    found = list(Nearest(4).parents(HOME, near).values())
    assert all(found.count(parent) <= 4 for parent in found)


def test_for_a_little_nobody_moves() -> None:
    one = Member("a", "lyon", {"home": 5.0})
    other = Member("b", "lyon", {"home": 5.1, "a": 0.1}, parent="a")
    third = Member("c", "lyon", {"home": 6.0, "a": 0.3, "b": 0.1}, parent="b")
    assert Nearest().parents(HOME, [one, other, third])["c"] == "b"


def test_rounds_have_who_hangs_and_the_home_has_newcomers() -> None:
    """`b` would be nearer to the home; the newcomer is near to `b`, and the home is far."""
    a = Member("a", "lyon", {"home": 5.0}, 10.0, parent="home")
    b = Member("b", "lyon", {"home": 5.0, "a": 50.0}, 10.0, parent="a")
    new = Member("c", "lyon", {"home": 500.0, "a": 400.0, "b": 1.0}, 10.0, is_new=True)
    found = Adaptive().parents(HOME, [a, b, new])
    assert found == {"a": "home", "b": "a", "c": "b"}
    assert "hangs under b" in Adaptive().why(HOME, [a, b, new], "c")[0]


def test_a_newcomer_does_not_begin_where_rows_wait() -> None:
    near = Member("near", "lyon", {"home": 1.0}, 10.0, parent="home", hop_ms=900.0)
    other = Member("other", "lyon", {"home": 20.0}, 10.0, parent="home", hop_ms=5.0)
    new = Member("c", "lyon", {"home": 500.0, "near": 1.0, "other": 30.0}, 10.0, is_new=True)
    assert Adaptive().parents(HOME, [near, other, new])["c"] == "other"


def test_a_tree_that_is_told_as_a_circle_is_hung_under_the_home() -> None:
    one = Member("a", "lyon", {"home": 5.0}, 10.0, parent="b")
    other = Member("b", "lyon", {"home": 5.0}, 10.0, parent="a")
    assert Adaptive().parents(HOME, [one, other]) == {"a": "home", "b": "a"}


@pytest.mark.parametrize("name", sorted(CHOICES))
@given(st.data())
def test_every_choice_is_a_tree(name: str, data: st.DataObject) -> None:
    names = [f"r{i}" for i in range(data.draw(st.integers(1, 8)))]
    everybody = ["home", *names]
    drawn = [
        Member(
            n,
            data.draw(st.sampled_from(["paris", "lyon"])),
            data.draw(st.dictionaries(st.sampled_from(everybody), st.floats(0, 50))),
            data.draw(st.floats(0, 1000)),
            data.draw(st.floats(0, 0.1)),
            data.draw(st.booleans()),
            data.draw(st.none() | st.sampled_from(everybody)),
        )
        for n in names
    ]
    choice = CHOICES[name]()
    found = choice.parents(HOME, drawn)
    assert sorted(found) == sorted(names)
    for start in names:
        way = [start]
        while way[-1] != "home":
            way.append(found[way[-1]])
            assert len(way) <= len(names) + 1, "a circle"
        assert choice.why(HOME, drawn, start)
