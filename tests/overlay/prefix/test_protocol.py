"""Prefix routing, step by step, and how near its tables are."""

import numpy as np
import pytest

from thalweg.overlay.membership import Doubt, Down, Join, Membership, Ping, Settings, Up
from thalweg.overlay.prefix.protocol import Hello, Prefix, PrefixSettings, Welcome
from thalweg.overlay.protocol import Deliver, Heard, Init, Receive, Send, Tell, TimerFired
from thalweg.overlay.stack import Stack
from thalweg.overlay.view import ALIVE, LEFT, Word
from thalweg.sim.networks import transit_stub
from thalweg.sim.networks.hosts import scattered
from thalweg.sim.scenarios.prefix import incomplete, prefix_at
from thalweg.sim.world import World


def node(name="me"):
    membership = Membership()
    membership.step(0, Init(name, 1, {}))
    prefix = Prefix(membership)
    prefix.step(0, Init(name, 1, {}))
    return prefix


def sent(effects):
    return [(e.to, type(e.message)) for e in effects if isinstance(e, Send)]


def test_who_is_heard_of_is_greeted_before_it_stands_in_the_table():
    prefix = node()
    assert sent(prefix.step(0, Heard("membership", Up("a")))) == [("a", Hello)]
    assert "a" not in prefix.table
    prefix.step(7, Receive("a", Welcome(0, ())))
    assert "a" in prefix.table


def test_who_is_greeted_answers_and_greets_back():
    prefix = node()
    effects = prefix.step(5, Receive("a", Hello(3, ("b",))))
    assert sent(effects) == [("a", Welcome), ("a", Hello), ("b", Hello)]


def test_silence_is_asked_again_then_doubted_and_ignored_as_hearsay():
    prefix = node()
    prefix.step(0, Heard("membership", Up("a")))
    assert sent(prefix.step(1, TimerFired(("answer", "a")))) == [("a", Hello)]
    assert prefix.step(2, TimerFired(("answer", "a"))) == [Tell("membership", Doubt("a"))]
    assert sent(prefix.step(3, Receive("b", Welcome(0, ("a",))))) == []
    assert sent(prefix.step(4, Heard("membership", Up("a")))) == [("a", Hello)]


def test_who_is_down_is_dropped():
    prefix = node()
    prefix.step(0, Receive("a", Welcome(0, ())))
    prefix.step(1, Heard("membership", Down("a")))
    assert "a" not in prefix.table


def test_who_was_gone_before_membership_heard_of_it_is_dropped_without_being_greeted():
    membership = Membership()
    membership.step(0, Init("me", 1, {}))
    prefix = Prefix(membership)
    prefix.step(0, Init("me", 1, {}))
    prefix.step(0, Receive("a", Welcome(0, ())))
    words = (Word("b", 0, ALIVE), Word("a", 0, LEFT))
    effects = membership.step(1, Receive("b", Ping(1, words)))
    assert [e.value for e in effects if isinstance(e, Deliver)] == [Up("b")]  # no Down of a
    assert sent(prefix.step(2, TimerFired("greet"))) == [("b", Hello)]
    assert "a" not in prefix.table


def test_rows_cut_the_network_into_parts():
    prefix = node()
    for i in range(100):
        prefix.step(0, Receive(f"n{i}", Welcome(0, ())))
    parts = prefix.parts(None)
    assert [a for a, _ in parts] == list(prefix.neighbours())
    for address, scope in parts:
        assert prefix.table.slot_of(address)[0] + 1 == scope
    assert [p for p in parts if p[1] > 1] == prefix.parts(1)
    assert prefix.covers(None, 3)
    assert prefix.covers(2, 3)
    assert not prefix.covers(3, 2)


def test_settings_are_checked():
    with pytest.raises(ValueError, match="above 0"):
        PrefixSettings(greet_every_us=0)


def test_tables_hold_near_nodes_where_there_is_a_choice():
    """Plaxton's locality on a transit-stub network of 64 hosts."""
    topology = transit_stub.generate(transit_stub.small(120), seed=2)
    network = scattered(topology, 64, seed=2)

    def build(address):
        membership = Membership()
        return Stack([membership, Prefix(membership)])

    world = World(build, seed=3, network=network)
    for i in range(64):
        world.start(f"n{i}")
        world.call(f"n{i}", "membership", Join(tuple(f"n{j}" for j in range(min(i, 2)))))
    world.run_for(60_000_000)
    assert incomplete(world.up()) is None
    ratios = []
    for host in world.up():
        table = prefix_at(host).table
        for address in table.row(0):
            fitting = [
                network.latency_us(host.index, other.index)
                for other in world.up()
                if other is not host and table.slot_of(other.address) == table.slot_of(address)
            ]
            if len(fitting) > 2:
                chosen = network.latency_us(host.index, world.hosts[address].index)
                ratios.append(chosen / np.mean(fitting))
    assert len(ratios) > 200
    assert np.mean(ratios) < 0.75


def test_tables_are_complete_though_membership_knows_only_a_few():
    """Rows are compared among nodes of one prefix, so nobody has to know everybody."""
    nodes = [f"n{i}" for i in range(48)]

    def build(address):
        membership = Membership(Settings(capacity=10))
        return Stack([membership, Prefix(membership)])

    world = World(build, seed=3)
    for i, address in enumerate(nodes):
        world.start(address)
        world.call(address, "membership", Join(tuple(nodes[max(0, i - 3) : i])))
        world.run_for(100_000)
    world.run_for(10_000_000)
    assert incomplete(world.up()) is None
