"""Rounds of redistribution, from the root down."""

from tests.overlay.distribution.making import Node, epoch, query, root_of_two, running, sent

from thalweg.overlay.distribution import messages as say
from thalweg.overlay.distribution.entries import Provider, Rate

SECOND = 1_000_000


def test_a_round_goes_down_with_all_rates():
    root = root_of_two()
    root.told(1, "s", Provider("s", 1.0), Rate(7, "s", 1, 50.0))
    root.beat(SECOND)
    rounds = sent(root.beat(6 * SECOND), say.Round)
    assert rounds == [("b", say.Round(0, 0.0, 0.0, (Rate(7, "s", 1, 50.0),)))]


def test_a_coordinator_moves_alike_queries_together_when_a_round_comes():
    leader = Node("m", members=("a", "b"), parent="r")
    for member, substreams in (("a", (0, 0, 0, 1)), ("b", (1, 1, 1))):
        runs = (running(f"{member}{i}", member, substreams=(s,)) for i, s in enumerate(substreams))
        leader.told(0, member, Provider(member, 9.0), *runs)
    for other in ("a", "b"):
        leader.tree._distances.observe(other, 80_000)
        leader.tree.place.led[0].hear(0, other, {"a": 40_000, "b": 40_000})
    rates = (Rate(0, "far", 1, 10.0), Rate(1, "far", 1, 10.0))
    orders = sent(leader.hear(1, "r", say.Round(0, 1.0, 0.0, rates)), say.Move)
    at = {f"{name}{i}": name for name, count in (("a", 4), ("b", 3)) for i in range(count)}
    at |= {m.name: m.to for _, m in orders}
    assert len({at[name] for name in ("a3", "b0", "b1", "b2")}) == 1
    assert len({at[name] for name in ("a0", "a1", "a2")}) == 1


def mixed_tree():
    """Below the root's halves, r and s here, b and c there, two kinds of queries at random."""
    root = root_of_two()
    kinds = {
        name: [running(f"{name}{i}", name, substreams=(i % 2,)) for i in range(10)]
        for name in "sbc"
    }
    root.told(1, "s", Provider("s", 1.0), Rate(0, "x", 1, 9.0), Rate(1, "x", 1, 9.0), *kinds["s"])
    root.told(1, "b", Provider("b", 1.0), Provider("c", 1.0), *kinds["b"], *kinds["c"])
    for number in range(10):
        wanted = query(f"r{number}", substreams=(number % 2,))
        root.hear(1, "x", say.Grant(wanted, epoch(1), 1.0))
    root.tree._distances.observe("b", 80_000)
    root.tree.place.led[1].hear(0, "b", {"r": 40_000})
    root.beat(SECOND)
    return root


def test_what_the_root_decides_goes_down_and_only_the_lowest_tell_owners():
    effects = mixed_tree().beat(6 * SECOND)
    [(to, told)] = sent(effects, say.Round)
    assert (to, told.level) == ("b", 0)
    there = {r.query.substreams[0] for r in told.coming}
    assert len(there) == 1  # one kind gathers there, the other one here
    assert all(r.owner in "rs" for r in told.coming)
    comes_here = [(to, m) for to, m in sent(effects, say.Move) if m.name in told.leaving]
    assert len(comes_here) == len(told.leaving) > 5
    assert {m.to for _, m in comes_here} <= {"r", "s"}
    assert not {r.query.name for r in told.coming} & {m.name for _, m in sent(effects, say.Move)}


def test_a_coordinator_takes_in_what_was_decided_above_as_far_as_it_has_room():
    leader = Node("m", members=("a",), parent="r")
    leader.told(0, "a", Provider("a", 1.0), *(running(f"a{i}", "a") for i in range(3)))
    coming = tuple(running(f"n{i}", "far", substreams=(9,)) for i in range(9))
    told = say.Round(0, 4.0, 0.0, (), coming, ("a0",))
    moves = sent(leader.hear(1, "r", told), say.Move)
    assert {to for to, m in moves if m.name.startswith("n")} == {"far"}
    into = [m.to for _, m in moves if m.name.startswith("n")]
    assert (into.count("a"), into.count("m")) == (2, 4)  # 4.4 each, and a keeps two


def test_what_leaves_is_not_moved_in_the_meantime():
    leader = Node("m", members=("a",), parent="r")
    for now_us in (0, 1):
        leader.told(now_us, "a", Provider("a", 1.0), *(running(f"a{i}", "a") for i in range(4)))
        told = say.Round(0, 1.0, 0.0, (), (), ("a0", "a1", "a2", "a3") if now_us == 0 else ())
        assert sent(leader.hear(now_us, "r", told), say.Move) == []
