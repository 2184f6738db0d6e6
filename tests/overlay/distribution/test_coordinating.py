"""Decisions on their way through the tree: routing down it, and rounds."""

from tests.overlay.distribution.making import Node, epoch, query, running, sent

from thalweg.overlay.distribution import messages as say
from thalweg.overlay.distribution.entries import Provider, Rate

SECOND = 1_000_000


def seek(level=say.NOT_YET, *, weight=1.0, epoch_=None, must_fit=False, fair=-1.0):
    return say.Seek("x", 4, query("q"), weight, epoch_, must_fit, level, fair, 9)


def root_of_two():
    """r leads itself and s at level 0, and itself and b (with c below it) at level 1."""
    root = Node("r", members=("s",))
    root.tree._lead(0, ["b"], None)
    root.told(0, "s", Provider("s", 1.0))
    root.told(0, "b", Provider("b", 1.0), Provider("c", 1.0))
    return root


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
    move = seek(0, weight=3.0, epoch_=epoch(1), must_fit=True, fair=1.0)
    assert leader.hear(1, "r", move) == []
    anyway = seek(0, weight=3.0, epoch_=epoch(1), fair=1.0)
    [(to, order)] = sent(leader.hear(1, "r", anyway), say.Move)
    assert (to, order.name, order.epoch) == ("x", "q", epoch(1))


def test_nobody_is_asked_to_take_a_query_who_takes_none():
    leader = Node("r", members=("a",), capability=0.0)
    leader.told(0, "a", Provider("a", 0.0))
    assert leader.hear(1, "x", seek()) == []


def test_a_round_goes_down_with_all_rates():
    root = root_of_two()
    root.told(1, "s", Provider("s", 1.0), Rate(7, "s", 1, 50.0))
    root.beat(SECOND)
    rounds = sent(root.beat(6 * SECOND), say.Round)
    assert rounds == [("b", say.Round(0, 0.0, (Rate(7, "s", 1, 50.0),)))]


def test_a_coordinator_moves_alike_queries_together_when_a_round_comes():
    leader = Node("m", members=("a", "b"), parent="r")
    for member, substreams in (("a", (0, 0, 0, 1)), ("b", (1, 1, 1))):
        runs = (running(f"{member}{i}", member, substreams=(s,)) for i, s in enumerate(substreams))
        leader.told(0, member, Provider(member, 9.0), *runs)
    for other in ("a", "b"):
        leader.tree._distances.observe(other, 80_000)
        leader.tree.place.led[0].hear(0, other, {"a": 40_000, "b": 40_000})
    rates = (Rate(0, "far", 1, 10.0), Rate(1, "far", 1, 10.0))
    orders = sent(leader.hear(1, "r", say.Round(0, 1.0, rates)), say.Move)
    assert ("a", "a3", "b") in [(to, m.name, m.to) for to, m in orders]
