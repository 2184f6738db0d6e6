"""The coordinator tree, step by step."""

import pytest

from thalweg.overlay.coordinators import messages as say
from thalweg.overlay.coordinators.tree import CoordinatorTree, TreeSettings
from thalweg.overlay.protocol import Init, Leave, Receive, Send, TimerFired

BEAT_US = 1_000_000


class Knows:
    def __init__(self, *others):
        self._others = others

    def up(self):
        return list(self._others)


def node(name, *others, k=2):
    tree = CoordinatorTree(Knows(*others), TreeSettings(k=k))
    tree.step(0, Init(name, 1, {}))
    return tree


def sends(effects, kind):
    return [(e.to, e.message) for e in effects if isinstance(e, Send) and type(e.message) is kind]


def hear(tree, now_us, sender, message):
    return tree.step(now_us, Receive(sender, message))


def beat(level, *members, deputy=None, above=(), root="r", replaces=None):
    return say.Heartbeat(level, members, deputy, above, root, replaces)


def member_of(leader, *members, now_us=0, **view):
    """A leaf `me` that was taken in."""
    tree = node("me", leader)
    hear(tree, now_us, leader, beat(0, *members, **view))
    return tree


def test_a_node_alone_is_a_root_that_looks_for_others():
    tree = node("b", "a")
    assert tree.place.is_root
    assert sends(tree.step(0, TimerFired("beat")), say.Ask) == [("a", say.Ask(None, 0))]


def test_of_two_single_nodes_the_later_name_joins_the_earlier():
    a, b = node("a", "b"), node("b", "a")
    b.step(0, TimerFired("beat"))
    (answer,) = sends(hear(a, 1, "b", say.Ask(None, 0)), say.Below)
    assert sends(hear(b, 2, "a", answer[1]), say.Join) == [("a", say.Join(0))]
    (first,) = sends(hear(a, 3, "b", say.Join(0)), say.Heartbeat)
    assert sends(hear(b, 4, "a", first[1]), say.Here) == [("a", say.Here(0, ()))]
    assert (a.place.height, b.place.parent, b.root) == (1, "a", "a")


def test_the_earlier_of_two_single_nodes_waits_for_the_later():
    a = node("a", "b")
    a.step(0, TimerFired("beat"))
    assert hear(a, 1, "b", say.Below(-1, (), "b", 0)) == []
    assert a.place.is_root


def test_a_join_is_directed_down_to_the_nearest_child():
    tree = node("me", "x")
    tree.step(0, TimerFired("beat"))
    # x is no root: it names one.
    assert sends(hear(tree, 1, "x", say.Below(-1, (), "r", 0)), say.Ask)[0][0] == "r"
    # The root's highest cluster is of level 2; this node belongs at level 0.
    pinged = sends(hear(tree, 2, "r", say.Below(2, ("r", "s"), "r", 3)), say.Ping)
    assert [to for to, _ in pinged] == ["r", "s"]
    hear(tree, 90, "r", say.Pong(2))
    (asked,) = sends(hear(tree, 40, "s", say.Pong(2)), say.Ask)
    assert asked == ("s", say.Ask(1, 0))
    hear(tree, 50, "s", say.Below(1, ("s", "t"), "r", 2))
    hear(tree, 60, "t", say.Pong(50))
    assert sends(hear(tree, 80, "s", say.Pong(50)), say.Join) == [("t", say.Join(0))]


def test_a_leader_that_is_not_ones_own_is_told_so():
    tree = member_of("a", "a", "me")
    assert sends(hear(tree, 5, "b", beat(0, "b", "me")), say.NotYours) == [("b", say.NotYours(0))]
    assert tree.place.parent == "a"


def test_who_takes_a_leaders_place_is_followed():
    tree = member_of("a", "a", "b", "me")
    hear(tree, 5, "b", beat(0, "b", "me", replaces="a"))
    assert tree.place.parent == "b"


def test_the_deputy_leads_on_when_its_parent_is_silent():
    tree = member_of("a", "a", "b", "me", deputy="me", above=("g",))
    effects = tree.step(5 * BEAT_US, TimerFired("beat"))
    assert sends(effects, say.Heartbeat)[0][0] == "b"
    assert sends(effects, say.Heartbeat)[0][1].replaces == "a"
    assert sends(effects, say.Ask) == [("g", say.Ask(None, 1))]


def test_others_wait_for_the_deputy_then_look_for_a_place_themselves():
    tree = member_of("a", "a", "b", "me", deputy="b", root="r")
    tree.step(5 * BEAT_US, TimerFired("beat"))
    assert tree.place.parent == "a"
    effects = tree.step(9 * BEAT_US, TimerFired("beat"))
    assert sends(effects, say.Ask) == [("r", say.Ask(None, 0))]


def leader_of(*others, distance=lambda a, b: 10, k=2):
    """`a`, root of one cluster, in which everybody has measured everybody."""
    tree = node("a", *others, k=k)
    for other in others:
        hear(tree, 0, other, say.Join(0))
        hear(tree, 0, "a", say.Pong(0))
    everyone = ["a", *others]
    for other in others:
        hear(tree, 2 * distance("a", other), other, say.Pong(0))
        hear(tree, 0, other, say.Here(0, tuple((m, distance(other, m)) for m in everyone)))
    return tree


def keep_alive(tree, now_us, *others, distance=lambda a, b: 10):
    everyone = ["a", *others]
    for other in others:
        hear(tree, now_us, other, say.Here(0, tuple((m, distance(other, m)) for m in everyone)))


def test_a_silent_member_is_forgotten():
    tree = leader_of("b", "c")
    keep_alive(tree, 5 * BEAT_US, "b")
    tree.step(5 * BEAT_US, TimerFired("beat"))
    assert sorted(tree.place.led[0].members) == ["a", "b"]


def test_too_large_a_cluster_is_split_and_the_root_grows():
    others = ["b", "c", "d", "e", "f"]
    at = dict(zip("abcdef", (0, 1, 2, 50, 51, 52), strict=True))
    tree = leader_of(*others, distance=lambda a, b: abs(at[a] - at[b]))
    effects = tree.step(BEAT_US, TimerFired("beat"))
    assert sends(effects, say.Promote) == [("e", say.Promote(0, (("d", "e", "f"),), "a"))]
    assert [sorted(c.members) for c in tree.place.led] == [["a", "b", "c"], ["a", "e"]]


def test_a_parent_off_centre_hands_over():
    at = {"a": 0, "b": 50, "c": 60, "d": 70}
    others = ["b", "c", "d"]

    def far(a, b):
        return abs(at[a] - at[b])

    tree = leader_of(*others, distance=far)
    keep_alive(tree, 5 * BEAT_US, *others, distance=far)
    effects = tree.step(5 * BEAT_US, TimerFired("beat"))
    assert sends(effects, say.Promote) == [("b", say.Promote(0, (("a", "b", "c", "d"),), None))]
    assert (tree.place.parent, tree.place.height) == ("b", 0)


def test_a_handover_is_repeated_until_its_effect_shows():
    at = {"a": 0, "b": 50, "c": 60}

    def far(a, b):
        return abs(at[a] - at[b])

    tree = leader_of("b", "c", distance=far)
    keep_alive(tree, 5 * BEAT_US, "b", "c", distance=far)
    tree.step(5 * BEAT_US, TimerFired("beat"))
    assert sends(tree.step(6 * BEAT_US, TimerFired("beat")), say.Promote)
    hear(tree, 7 * BEAT_US, "b", beat(0, "a", "b", "c"))
    assert not sends(tree.step(8 * BEAT_US, TimerFired("beat")), say.Promote)


def test_the_promoted_leads_and_takes_the_place_above():
    tree = member_of("a", "a", "b", "me")
    effects = hear(tree, 9, "a", say.Promote(0, (("a", "b", "me"), ("me", "x")), "g"))
    assert tree.place.height == 2
    assert sends(effects, say.Join) == [("g", say.Join(2))]
    assert {to for to, _ in sends(effects, say.Heartbeat)} == {"a", "b", "x"}


def test_a_late_promotion_is_ignored():
    tree = member_of("a", "a", "b", "me")
    assert hear(tree, 9, "b", say.Promote(0, (("b", "me"),), "g")) == []
    assert tree.place.height == 0


def test_two_that_merge_into_each_other_end_with_one_leader():
    """Both stepped down at once: the earlier name takes both clusters."""
    tree = member_of("z", "me", "z")
    effects = hear(tree, 9, "z", say.Merge(0, ("y", "z")))
    assert sorted(tree.place.led[0].members) == ["me", "y", "z"]
    assert {to for to, _ in sends(effects, say.Heartbeat)} == {"y", "z"}


def test_who_leaves_names_an_heir():
    tree = leader_of("b", "c")
    (promote,) = sends(tree.step(1, Leave()), say.Promote)
    assert promote == ("b", say.Promote(0, (("b", "c"),), None))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"k": 1}, "2 is the least"),
        ({"heartbeat_us": 0}, "a heartbeat takes some time"),
        ({"lease_heartbeats": 1}, "two heartbeats"),
        ({"tolerance": -0.1}, "can't be negative"),
    ],
)
def test_settings_that_make_no_tree_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        TreeSettings(**settings)
