"""Nodes that place queries together: what they come to, and what they do about losses."""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.overlay.sand.networks import (
    Doubted,
    Everybody,
    Matrix,
    addresses,
    centralised,
    drawn,
    place_and_run,
    sand_at,
    standing,
    world_of,
)

from thalweg.overlay.generator import Generator
from thalweg.overlay.ring import distance
from thalweg.overlay.routing import id_of
from thalweg.overlay.sand.messages import (
    AskAgain,
    DropQuery,
    Placed,
    PlaceQuery,
    Refused,
    Stands,
    Waiting,
)
from thalweg.overlay.sand.protocol import Sand
from thalweg.overlay.sand.query import placer_named, query_of
from thalweg.overlay.sand.settings import SandSettings
from thalweg.overlay.sand.zones import zone_key, zone_tops
from thalweg.overlay.stack import Stack
from thalweg.placement.sand.parts import Operator, Source, make_tree
from thalweg.placement.sand.placing import place
from thalweg.sim.kernel import SECOND_US
from thalweg.sim.weather import Rates, Weather
from thalweg.sim.world import World


@settings(max_examples=80, deadline=None)
@given(drawn(), st.sampled_from(["edge", "edge+"]), st.integers(1, 3))
def test_without_faults_the_outcome_is_the_centralised_one_over_what_messages_carry(
    instance, algorithm, levels
):
    tree, latency_us, ways = instance
    names = addresses(len(latency_us))
    query = query_of(tree, names, algorithm, levels)
    world = world_of(latency_us)
    place_and_run(world, query)
    tops = zone_tops(query, tree)
    expected = centralised(tree, ways, placer_named(algorithm, 0), algorithm, tops)
    found = standing(world, query)
    assert found == {n: [names[expected[n]]] for n in range(len(tree)) if tree.inputs[n]}
    told = sand_at(world, query.proxy).proxying.stands[query.name]
    assert told.at == tuple(names[host] for host in expected)
    assert {zone for zone, _ in told.coordinators} == set(tops) - {-1}


@settings(max_examples=30, deadline=None)
@given(drawn(), st.sampled_from(["edge", "edge+"]))
def test_with_one_zone_for_the_whole_tree_it_is_the_centralised_algorithm(instance, algorithm):
    tree, latency_us, ways = instance
    names = addresses(len(latency_us))
    query = query_of(tree, names, algorithm, levels=len(tree))
    world = world_of(latency_us)
    place_and_run(world, query)
    expected = place(tree, ways, placer_named(algorithm, 0))
    found = standing(world, query)
    assert found == {n: [names[expected[n]]] for n in range(len(tree)) if tree.inputs[n]}


# --- losses, step by step ---


def join_query(name="q", bound_ms=float("inf")):
    """A join of streams at h000 and h001; the top, with the root at h002, is another zone."""
    tree = make_tree(
        name,
        (Source("a", 8.0, 0), Source("b", 5.0, 1), Source("c", 5.0, 1)),
        (Operator("join", ("a", "b"), 0.1), Operator("top", ("join", "c"), 0.1)),
        2,
        bound_ms,
    )
    return query_of(tree, addresses(6), "edge", 1)


JOIN, TOP, ROOT = 2, 4, 5


def far(hosts=6):
    return np.full((hosts, hosts), 10_000) - 10_000 * np.eye(hosts, dtype=int)


def coordinator(world, zone, name="q"):
    (found,) = [
        h.address for h in world.up() if (name, zone) in h.stack["sand"].coordinating.duties
    ]
    return found


def test_a_proxy_that_asks_again_hears_where_everything_stands_before_the_next_renewal():
    heard = []
    world = world_of(
        far(),
        SandSettings(renew_every_us=60 * SECOND_US, lease_us=180 * SECOND_US),
        lambda host, _, value: heard.append((host.address, value)),
    )
    place_and_run(world, join_query(), 1)
    assert not [v for _, v in heard if isinstance(v, Stands)]
    world.call("h002", "sand", AskAgain("q"))
    world.run_for(SECOND_US)
    ((at, told),) = [(a, v) for a, v in heard if isinstance(v, Stands)]
    assert at == "h002"
    assert (told.at[JOIN], told.at[TOP], told.at[ROOT]) == ("h000", "h001", "h002")
    assert dict(told.coordinators) == {z: coordinator(world, z) for z in (JOIN, ROOT)}
    world.call("h002", "sand", DropQuery("q"))
    world.run_for(SECOND_US)
    assert sand_at(world, "h002").proxying.stands == {}


def test_every_operator_gets_its_neighbours_and_every_source_its_taker():
    delivered = []
    world = world_of(far(), delivered=lambda host, _, value: delivered.append((host, value)))
    place_and_run(world, join_query())
    at = {node: hosts[0] for node, hosts in standing(world, join_query()).items()}
    assert at == {JOIN: "h000", TOP: "h001", ROOT: "h002"}
    running = sand_at(world, "h001").hosting.running["q", TOP]
    assert (running.inputs, running.taker) == (((JOIN, "h000"), (3, "h001")), "h002")
    assert sand_at(world, "h001").hosting.sources["q", 1].taker == "h000"
    assert [(h.address, v) for h, v in delivered if isinstance(v, Placed)] == [
        ("h002", Placed("q"))
    ]


def test_a_coordinator_that_stops_is_replaced_and_nothing_is_mapped_twice():
    names, down = addresses(6), set()
    settings_ = SandSettings(renew_every_us=SECOND_US, lease_us=4 * SECOND_US)

    class Ring(Everybody):
        def next_hop(self, key):
            self.others = [a for a in names if a not in down]
            return super().next_hop(key)

        def is_down(self, address):
            return address in down

    def build(address):
        return Stack([Doubted(), Sand(Ring(address, names), Ring(address, names), settings_)])

    world = World(build, seed=1, network=Matrix(far()))
    for name in names:
        world.start(name)
    query = next(
        q
        for q in (join_query(f"q{i}") for i in range(50))
        if owner(names, q.name, JOIN) != owner(names, q.name, ROOT)
        and {owner(names, q.name, JOIN), owner(names, q.name, ROOT)} <= set(names[3:])
    )
    place_and_run(world, query)
    before = standing(world, query)
    for zone in (JOIN, ROOT):
        lost = coordinator(world, zone, query.name)
        down.add(lost)
        world.crash(lost)
        world.run_for(12 * SECOND_US)
        assert coordinator(world, zone, query.name) != lost
        assert standing(world, query) == before


def owner(names, query, zone):
    return min(names, key=lambda a: distance(zone_key(query, zone), id_of(a)))


def test_a_dropped_query_is_invalidated_everywhere_at_once():
    world = world_of(far())
    place_and_run(world, join_query())
    world.call("h002", "sand", DropQuery("q"))
    world.run_for(SECOND_US // 2)  # no lease has run out yet
    assert standing(world, join_query()) == {}
    assert all(not sand_at(world, a).coordinating.duties for a in addresses(6))
    assert all(not sand_at(world, a).hosting.sources for a in addresses(6))


def test_without_its_proxy_a_query_lapses():
    world = world_of(far())
    place_and_run(world, join_query())
    world.crash("h002")
    world.run_for(25 * SECOND_US)
    assert standing(world, join_query()) == {}


def test_a_proxy_that_restarts_goes_on_asking():
    world = world_of(far())
    place_and_run(world, join_query())
    world.crash("h002")
    world.run_for(25 * SECOND_US)
    world.start("h002")
    world.run_for(8 * SECOND_US)
    assert {n: len(hosts) for n, hosts in standing(world, join_query()).items()} == {
        JOIN: 1,
        TOP: 1,
        ROOT: 1,
    }


def test_while_a_source_is_missing_nothing_stays_mapped_and_the_proxy_is_told():
    delivered = []
    world = world_of(far(), delivered=lambda host, _, value: delivered.append(value))
    world.crash("h001")
    place_and_run(world, join_query(), seconds=40)
    assert standing(world, join_query()) == {}
    whys = {v.why for v in delivered if isinstance(v, Waiting)}
    assert any("node 1" in why for why in whys)
    world.start("h001")
    world.run_for(8 * SECOND_US)
    assert len(standing(world, join_query())) == 3


def test_lost_messages_are_said_again():
    for seed in range(5):
        world = world_of(far())
        world.weather = Weather(Generator(seed), Rates.of({"loss": 0.3, "duplication": 0.3}))
        place_and_run(world, join_query(), seconds=30)
        world.weather = None
        world.run_for(12 * SECOND_US)
        counts = Counter({n: len(hosts) for n, hosts in standing(world, join_query()).items()})
        assert counts == {JOIN: 1, TOP: 1, ROOT: 1}


def test_a_bound_that_nothing_meets_is_told_to_the_proxy():
    delivered = []
    world = world_of(far(), delivered=lambda host, _, value: delivered.append(value))
    place_and_run(world, join_query(bound_ms=9.0))
    assert standing(world, join_query()) == {}
    assert any(isinstance(v, Waiting) and "nothing is in time" in v.why for v in delivered)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"algorithm": "best"}, "no algorithm 'best'; there are edge"),
        ({"levels": 0}, "a zone has a level or more"),
        ({"nodes": ()}, "a tree has a source and a root"),
    ],
)
def test_what_can_not_be_placed_is_refused_with_the_reason(change, why):
    delivered = []
    world = world_of(far(), delivered=lambda host, _, value: delivered.append(value))
    world.call("h002", "sand", PlaceQuery(msgspec.structs.replace(join_query(), **change)))
    (refused,) = delivered
    assert why in refused.why


def test_only_its_own_proxy_may_ask_for_a_query_and_only_once():
    delivered = []
    world = world_of(far(), delivered=lambda host, _, value: delivered.append(value))
    world.call("h000", "sand", PlaceQuery(join_query()))
    place_and_run(world, join_query(), seconds=0)
    world.call("h002", "sand", PlaceQuery(join_query()))
    world.call("h000", "sand", DropQuery("q"))
    whys = [v.why for v in delivered if isinstance(v, Refused)]
    assert len(whys) == 3
    assert "its proxy is h002" in whys[0]
    assert "there is a query of this name" in whys[1]
    assert "asks for no such query" in whys[2]


# --- routes, peers and measurements ---


class Line(Everybody):
    """An overlay in which letters for h000 and h001 pass h003, while it does not avoid that."""

    down: ClassVar[set[str]] = set()
    avoided: ClassVar[set[str]] = set()

    def next_hop(self, key):
        owner = min(self.others, key=lambda a: distance(key, id_of(a)))
        if owner == self.own:
            return None
        by_way = owner in ("h000", "h001") and self.own == "h002"
        by_way = by_way and "h003" not in self.down | self.avoided
        return "h003" if by_way else owner

    def is_down(self, address):
        return address in self.down


def star_world():
    """h003 in the middle, 5 ms from everybody; the others 10 ms from each other."""
    latency_us = far(4)
    latency_us[3, :3] = latency_us[:3, 3] = 5_000
    Line.down.clear()
    Line.avoided.clear()

    def build(address):
        knows = Line(address, addresses(4))
        return Stack([Doubted(), Sand(knows, knows, SandSettings())])

    world = World(build, seed=1, network=Matrix(latency_us))
    for name in addresses(4):
        world.start(name)
    return world


def meeting_query():
    tree = make_tree(
        "q",
        (Source("a", 8.0, 0), Source("b", 8.0, 1)),
        (Operator("join", ("a", "b"), 1.0),),
        2,
    )
    return query_of(tree, addresses(4), "in-network", 1)


def test_in_network_finds_peers_on_the_routes_and_measures_the_ways_to_them():
    world = star_world()
    place_and_run(world, meeting_query())
    assert standing(world, meeting_query())[2] == ["h003"]
    assert world.sent["sand", "Measured"] == 6  # every pair once


def test_an_operator_leaves_a_host_that_stops_and_stays_away_from_it():
    world = star_world()
    place_and_run(world, meeting_query())
    Line.down.add("h003")
    world.crash("h003")
    world.run_for(25 * SECOND_US)
    (host,) = standing(world, meeting_query())[2]
    assert host != "h003"


def test_a_host_that_does_not_answer_is_doubted_and_not_used_until_it_speaks():
    """Whatever membership knows of it."""
    world = star_world()
    place_and_run(world, meeting_query())
    (coordinating,) = [h.address for h in world.up() if h.stack["sand"].coordinating.duties]
    assert coordinating != "h003"
    world.pause("h003")
    Line.avoided.add("h003")  # visits find another way
    world.run_for(25 * SECOND_US)
    assert "h003" in world.hosts[coordinating].stack["membership"].doubts
    hosts = [h for h in standing(world, meeting_query())[2] if h != "h003"]
    assert len(hosts) == 1
    world.resume("h003")
    world.run_for(15 * SECOND_US)
    assert standing(world, meeting_query())[2] == ["h003"]


def test_once_known_coordinators_are_written_to_directly():
    world = world_of(far())
    place_and_run(world, join_query())
    first = world.sent["sand", "AddSubtree"]
    world.run_for(20 * SECOND_US)
    renewals = world.sent["sand", "AddSubtree"] - first
    assert renewals == 10 * 2  # two zones, a message each


def test_a_probe_that_was_held_up_does_not_keep_a_query_out_for_ever():
    delivered = []
    latency_us = far() * 10
    world = world_of(latency_us, delivered=lambda host, _, value: delivered.append(value))
    place_and_run(world, join_query(bound_ms=50.0))
    assert standing(world, join_query()) == {}
    assert any(isinstance(v, Waiting) and "nothing is in time" in v.why for v in delivered)
    latency_us //= 10
    world.run_for(10 * SECOND_US)
    assert len(standing(world, join_query())) == 3
