"""Queries on their way down the tree."""

from tests.overlay.distribution.making import Node, epoch, query, root_of_two, running, seek, sent

from thalweg.overlay.distribution import messages as say
from thalweg.overlay.distribution.entries import Provider


def test_a_child_coordinator_goes_on_at_the_level_below():
    root = root_of_two()
    root.told(1, "s", Provider("s", 1.0), *(running(f"s{i}", "s") for i in range(4)))
    root.hear(2, "x", say.Grant(query("own"), epoch(1), 4.0))
    [(to, passed)] = sent(root.hear(3, "x", seek()), say.Seek)
    assert (to, passed.level, passed.fair) == ("b", 0, 9 / 4)


def test_the_roots_own_half_is_chosen_from_at_once():
    root = root_of_two()
    busy = [running(f"b{i}", "b") for i in range(4)] + [running(f"c{i}", "c") for i in range(4)]
    root.told(1, "b", Provider("b", 1.0), Provider("c", 1.0), *busy)
    [(to, found)] = sent(root.hear(2, "x", seek()), say.Found)
    assert (to, found.token) == ("x", 4)
    assert found.provider in ("r", "s")


def test_what_can_stay_is_not_moved_to_where_it_does_not_fit():
    leader = Node("r", members=("a",))
    leader.told(0, "a", Provider("a", 1.0))
    assert leader.hear(1, "r", seek(0, weight=3.0, epoch_=epoch(1), fair=1.0)) == []
    fits = seek(0, weight=3.0, epoch_=epoch(1), fair=3.0)
    [(to, order)] = sent(leader.hear(1, "r", fits), say.Move)
    assert (to, order.name, order.epoch) == ("x", "q", epoch(1))
    assert sent(leader.hear(1, "r", seek(0, weight=3.0, fair=1.0)), say.Found)  # one that is new


def test_nobody_is_asked_to_take_a_query_who_takes_none():
    leader = Node("r", members=("a",), capability=0.0)
    leader.told(0, "a", Provider("a", 0.0))
    assert leader.hear(1, "x", seek()) == []
