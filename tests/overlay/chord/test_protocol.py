"""Chord among a few nodes, in fine weather; and its rules, step by step."""

import math

import pytest

from thalweg.overlay.chord.messages import (
    AskNeighbours,
    Create,
    FindOwner,
    Found,
    Introduce,
    Leaving,
    Lookup,
    Neighbours,
    NotFound,
    Notify,
    Route,
)
from thalweg.overlay.chord.protocol import Chord
from thalweg.overlay.chord.settings import Settings
from thalweg.overlay.generator import Generator
from thalweg.overlay.membership import Doubt, Down, Farewell, Join, Membership
from thalweg.overlay.protocol import (
    Call,
    Deliver,
    Heard,
    Init,
    Leave,
    Persist,
    Receive,
    Send,
    SetTimer,
    Tell,
    TimerFired,
)
from thalweg.overlay.routing import IDS, id_of
from thalweg.overlay.stack import Stack
from thalweg.overlay.view import ALIVE, DOWN, SUSPECT, Word
from thalweg.sim.kernel import SECOND_US
from thalweg.sim.scenarios.chord import chord_at, owner_of
from thalweg.sim.world import World

# In ring order, whatever the hash says; the node under test is the first.
RING = sorted((f"n{i}" for i in range(8)), key=id_of)
ME, B, C, D, E, F, G, H = RING


def _sends(effects):
    return [(e.to, e.message) for e in effects if isinstance(e, Send)]


def _node(*successors, predecessor=None):
    node = Chord(Membership(), Settings(successors=3))
    node.step(0, Init(ME, 1, {}))
    node.step(0, Call(Create()))
    node.table.follow(successors)
    node.table.predecessor = predecessor
    return node


def _asked(effects):
    """Whom the effects ask for neighbours, and under which token."""
    return [(to, m.token) for to, m in _sends(effects) if isinstance(m, AskNeighbours)]


def test_stabilising_takes_over_the_successors_list():
    node = _node(C)
    [(to, token)] = _asked(node.step(0, TimerFired("stabilise")))
    assert to == C
    effects = node.step(0, Receive(C, Neighbours(token, True, ME, (D, E, F))))
    assert node.table.successors == (C, D, E)
    assert _sends(effects) == [(C, Notify((C, D, E)))]


def test_a_nearer_successor_is_adopted_once_it_has_answered():
    node = _node(C)
    [(_, token)] = _asked(node.step(0, TimerFired("stabilise")))
    [(to, token)] = _asked(node.step(0, Receive(C, Neighbours(token, True, B, (D,)))))
    assert to == B
    assert node.table.successors == (C, D)
    node.step(0, Receive(B, Neighbours(token, True, None, (C, D))))
    assert node.table.successors == (B, C, D)


def test_a_successor_that_left_the_ring_is_dropped():
    node = _node(B, C)
    [(_, token)] = _asked(node.step(0, TimerFired("stabilise")))
    node.step(0, Receive(B, Neighbours(token, False, None, ())))
    assert node.table.successors == (C,)


def test_an_answer_that_nobody_waits_for_changes_nothing():
    node = _node(C)
    assert node.step(0, Receive(B, Neighbours(99, True, None, (C,)))) == []
    assert node.table.successors == (C,)


def test_a_successor_that_does_not_answer_is_doubted_not_dropped():
    node = _node(B)
    [(_, token)] = _asked(node.step(0, TimerFired("stabilise")))
    assert node.step(0, TimerFired(("neighbours", token))) == [Tell("membership", Doubt(B))]
    assert node.table.successors == (B,)
    node.step(0, Heard("membership", Down(B)))
    assert node.table.successors == ()


def test_a_silent_predecessor_is_doubted():
    node = _node(B, predecessor=H)
    doubts = [e for _ in range(5) for e in node.step(0, TimerFired("stabilise"))]
    assert Tell("membership", Doubt(H)) in doubts


def test_without_successors_the_one_before_will_do():
    node = _node(predecessor=H)
    [(to, token)] = _asked(node.step(0, TimerFired("stabilise")))
    node.step(0, Receive(H, Neighbours(token, True, None, (ME,))))
    assert (to, node.table.successors) == (H, (H,))


def test_rectify_takes_a_nearer_predecessor_and_no_farther_one():
    node = _node(B, predecessor=F)
    node.step(0, Receive(G, Notify(())))
    assert node.table.predecessor == G
    node.step(0, Receive(E, Notify(())))
    assert node.table.predecessor == G


def test_what_the_one_before_knows_in_between_is_looked_at():
    node = _node(D, predecessor=H)
    assert [to for to, _ in _asked(node.step(0, Receive(H, Notify((B, C, E)))))] == [B]


def test_who_should_be_the_successor_is_asked():
    node = _node(D)
    assert [to for to, _ in _asked(node.step(0, Receive(B, Introduce())))] == [B]
    assert _asked(node.step(0, Receive(E, Introduce()))) == []


def test_a_leaving_neighbour_hands_over_its_own():
    node = _node(B, C, predecessor=H)
    node.step(0, Receive(B, Leaving(ME, (C, D, E))))
    assert node.table.successors == (C, D, E)
    node.step(0, Receive(H, Leaving(G, (ME, C))))
    assert node.table.predecessor == G


def test_leaving_is_told_to_both_sides_and_forgotten_on_disk():
    effects = _node(B, C, predecessor=H).step(0, Leave())
    assert Persist("joined", None) in effects
    assert [to for to, _ in _sends(effects)] == [H, B]


def test_outside_the_ring_nothing_is_known_and_nothing_found():
    node = Chord(Membership())
    node.step(0, Init(ME, 1, {}))
    assert _sends(node.step(0, Receive(B, AskNeighbours(1)))) == [
        (B, Neighbours(1, False, None, ()))
    ]
    assert _sends(node.step(0, Receive(B, FindOwner(1, 5)))) == [(B, Route(1, (), ()))]
    assert node.step(0, Call(Lookup(5, "t"))) == [Deliver(NotFound("t", 5))]


def test_a_lookup_goes_from_node_to_node_and_round_the_silent():
    node = _node(B, C, D)
    key = id_of(H)
    [(to, ask)] = _sends(node.step(0, Call(Lookup(key, "t"))))
    assert to == D
    [(to, ask)] = _sends(node.step(0, TimerFired(("route", ask.token))))
    assert to == C
    [(to, ask)] = _sends(node.step(0, Receive(C, Route(ask.token, (), (F, E)))))
    assert to == F
    effects = node.step(0, Receive(F, Route(ask.token, (H,), ())))
    assert effects[-1] == Deliver(Found("t", key, (H,), 2))


def test_a_lookup_without_answers_is_tried_again_and_given_up():
    node = _node(B)
    effects = node.step(0, Call(Lookup(id_of(H), "t")))
    attempts = 0
    while not isinstance(effects[-1], Deliver):
        for effect in effects:
            if isinstance(effect, SetTimer):
                attempts += effect.key[0] == "again"
                effects = node.step(0, TimerFired(effect.key))
    assert effects[-1] == Deliver(NotFound("t", id_of(H)))
    assert attempts == 3


def test_a_node_that_was_in_a_ring_and_finds_nobody_is_one_itself():
    node = Chord(Membership())
    effects = node.step(0, Init(ME, 1, {"joined": b""}))
    assert SetTimer("alone", Settings().alone_after_us) in effects
    node.step(0, TimerFired("alone"))
    assert node.joined
    assert node.next_hop(5) is None


def _newcomer(*others, name="a"):
    """Outside of any ring; these run, by what it knows."""
    membership = Membership()
    membership.step(0, Init(name, 1, {}))
    for other in others:
        membership.view.take(Word(other, 0, ALIVE))
    node = Chord(membership)
    node.step(0, Init(name, 1, {}))
    return node


def test_a_newcomer_begins_a_ring_where_all_that_run_say_that_they_are_in_none():
    node = _newcomer(B, C)
    node.step(0, Receive(B, Route(1, (), ())))
    again = SetTimer("alone", Settings().alone_after_us)
    assert node.step(0, TimerFired("alone")) == [again]
    assert not node.joined  # C may be in one
    node.step(0, Receive(C, Route(2, (), ())))
    node.step(0, TimerFired("alone"))
    assert node.joined


def test_of_many_newcomers_the_first_by_name_begins_the_ring():
    node = _newcomer(B, C, name="z")
    node.step(0, Receive(B, Route(1, (), ())))
    node.step(0, Receive(C, Route(2, (), ())))
    node.step(0, TimerFired("alone"))
    assert not node.joined


def test_a_newcomer_asks_those_first_who_have_not_said_that_they_are_in_no_ring():
    others = [f"n{i:02}" for i in range(24)]
    node = _newcomer(*others)
    asked = []
    effects = node.step(0, TimerFired("stabilise"))
    while len(asked) < len(others):
        ((other, question),) = _sends(effects)
        asked.append(other)
        effects = node.step(0, Receive(other, Route(question.token, (), ())))
        if not _sends(effects):
            effects = node.step(0, TimerFired("stabilise"))
    assert sorted(asked) == others


@pytest.mark.parametrize("route", [Route(2, (D, E), ()), Route(2, (), (D,))])
def test_a_newcomer_that_hears_of_a_ring_begins_none(route):
    node = _newcomer(B, C)
    node.step(0, Receive(B, Route(1, (), ())))
    node.step(0, Receive(C, route))
    node.step(0, Receive(C, Route(3, (), ())))
    node.step(0, TimerFired("alone"))
    assert not node.joined  # B's word is from before


def test_a_newcomer_that_knows_nobody_begins_no_ring():
    node = _newcomer()
    node.step(0, TimerFired("alone"))
    assert not node.joined


def test_a_hop_leads_towards_the_key_even_where_all_known_nodes_are_down():
    node = _node(B, C)
    node.table.predecessor = H
    assert node.next_hop(id_of(B)) == B
    assert node.next_hop(id_of(G)) == C
    for address in (B, C):
        word = (Word(address, 0, SUSPECT), Word(address, 0, DOWN))
        node._membership.step(0, Receive("x", Farewell(word)))
    assert node.next_hop(id_of(G)) == B


def test_a_successor_beyond_half_of_the_ring_needs_no_fingers():
    node = _node(B)
    node.table.own_id = (id_of(B) + 5) % IDS
    assert [type(e) for e in node.step(0, TimerFired("finger"))] == [SetTimer]


def test_impossible_settings_are_refused():
    with pytest.raises(ValueError, match="0 successors"):
        Settings(successors=0)
    with pytest.raises(ValueError, match="above 0"):
        Settings(attempts=0)


NODES = 64


@pytest.fixture(scope="module")
def ring():
    """A ring that grew node by node, and has had time for its fingers."""

    def build(address):
        membership = Membership()
        return Stack([membership, Chord(membership)])

    found = []
    world = World(build, on_deliver=lambda host, _, value: found.append(value))
    for number in range(NODES):
        address = f"n{number}"
        world.start(address)
        world.call(address, "chord" if number == 0 else "membership", _first_call(number))
        world.run_for(SECOND_US // 4)
    world.run_for(30 * SECOND_US)
    found.clear()
    return world, found


def _first_call(number):
    return Create() if number == 0 else Join((f"n{number // 2}",))


def test_lookups_find_the_owner_in_a_logarithm_of_hops(ring):
    world, found = ring
    generator = Generator(5)
    keys = [generator.bits() for _ in range(300)]
    for key in keys:
        world.call(generator.choice(list(world.hosts)), "chord", Lookup(key, key))
    world.run_for(10 * SECOND_US)
    answers = {f.tag: f for f in found if isinstance(f, Found)}
    assert {k: answers[k].owners[0] for k in keys} == {
        k: owner_of(k, list(world.hosts.values())) for k in keys
    }
    hops = [f.hops for f in answers.values()]
    assert sum(hops) / len(hops) <= math.log2(NODES) / 2 + 1
    assert max(hops) <= math.log2(NODES) + 2


def test_hop_by_hop_routing_ends_at_the_owner(ring):
    world, _ = ring
    generator = Generator(6)
    for _ in range(100):
        key, here = generator.bits(), generator.choice(list(world.hosts))
        for _hop in range(NODES):
            there = chord_at(world.hosts[here]).next_hop(key)
            if there is None:
                break
            here = there
        assert here == owner_of(key, list(world.hosts.values()))


def test_the_whole_ring_can_be_cut_into_parts_that_meet_everybody_once(ring):
    world, _ = ring
    reached, todo = ["n3"], [("n3", None)]
    while todo:
        here, scope = todo.pop()
        for there, part in chord_at(world.hosts[here]).parts(scope):
            reached.append(there)
            todo.append((there, part))
    assert sorted(reached) == sorted(world.hosts)


def test_a_scope_covers_what_lies_nearer(ring):
    chord = chord_at(ring[0].hosts["n3"])
    near = (chord.table.own_id + 10) % IDS
    far = (chord.table.own_id + 20) % IDS
    assert chord.covers(far, near)
    assert chord.covers(None, far)
    assert not chord.covers(near, far)
