"""What a node knows of the ring. Positions are chosen by hand, not by hashes."""

import pytest

from thalweg.overlay.chord.table import Table

PLACES = {"me": 0, "a": 10, "b": 20, "c": 40, "d": 80, "e": 1 << 63}


@pytest.fixture
def table(monkeypatch):
    """Node `me` at 0, the others where PLACES has them."""
    monkeypatch.setattr("thalweg.overlay.chord.table.id_of", PLACES.__getitem__)
    return Table("me", 3)


def nobody(address):
    return False


def test_successors_are_the_nearest_in_order_without_doubles_and_oneself(table):
    table.follow(["d", "b", "me", "b", "a", "c"])
    assert table.successors == ("a", "b", "c")


def test_alone_one_owns_everything(table):
    assert table.owns(5)
    assert table.owners(5) == ("me",)
    assert table.is_nearer_successor("e")
    assert not table.is_nearer_successor("me")


def test_a_successor_in_between_is_nearer(table):
    table.follow(["b"])
    assert table.is_nearer_successor("a")
    assert not table.is_nearer_successor("b")
    assert not table.is_nearer_successor("c")


def test_the_predecessor_is_the_farthest_round(table):
    assert table.is_nearer_predecessor("a")
    table.predecessor = "c"
    assert table.is_nearer_predecessor("d")
    assert not table.is_nearer_predecessor("b")
    assert not table.is_nearer_predecessor("me")


def test_keys_up_to_the_successor_are_its_own(table):
    table.follow(["a", "b"])
    assert table.owners(1) == ("a", "b")
    assert table.owners(10) == ("a", "b")
    assert table.owners(11) == ()
    assert table.owners(0) == ()  # one's own identifier: all the way round


def test_keys_behind_the_predecessor_are_ones_own(table):
    table.follow(["a"])
    table.predecessor = "d"
    assert not table.owns(80)
    assert table.owns(81)
    assert table.owns(0)


def test_the_nearest_before_the_key_come_first_and_the_dead_not_at_all(table):
    table.follow(["a", "b", "c"])
    table.fingers = {6: "d"}
    assert table.nearer(90, nobody) == ("d", "c", "b")
    assert table.nearer(41, lambda a: a == "b") == ("c", "a")
    assert table.nearer(0, nobody) == ("d", "c", "b")


def test_who_is_dropped_is_nowhere(table):
    table.follow(["a", "b"])
    table.predecessor, table.fingers = "a", {3: "a", 6: "b"}
    table.drop("a")
    assert (table.successors, table.predecessor, table.fingers) == (("b",), None, {6: "b"})


def test_fingers_with_the_same_owner_are_searched_once(table):
    table.follow(["a"])
    assert table.finger_after(0) == 4  # 1, 2, 4 and 8 lie before a, at 10
    assert table.finger_key(4) == 16
    assert table.set_finger(4, "b") == 5  # b, at 20, also has... nothing more: 32 lies beyond it
    assert table.set_finger(5, "c") == 6
    assert table.set_finger(6, "e") == 64  # 64 up to 2⁶³ are all e's
    assert table.fingers == {4: "b", 5: "c", 6: "e"}
    assert table.routes() == ["a", "b", "c", "e"]


def test_a_finger_that_is_oneself_ends_the_round(table):
    table.follow(["a"])
    table.fingers = {10: "d"}
    assert table.set_finger(4, "me") == 64
    assert table.fingers == {}
