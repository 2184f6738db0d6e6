"""Rounds of redistribution, from the root down."""

from tests.overlay.distribution.making import Node, root_of_two, running, sent

from thalweg.overlay.distribution import messages as say
from thalweg.overlay.distribution.entries import Provider, Rate

SECOND = 1_000_000


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
