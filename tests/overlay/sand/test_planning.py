"""Zones placed one by one, from what their coordinators would tell each other."""

from __future__ import annotations

from math import inf

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.drawn import examples
from tests.overlay.sand.networks import addresses, centralised, drawn
from tests.placement.sand.trees import line

from thalweg.overlay.sand.planning import Told, place_zone, told_of_source
from thalweg.overlay.sand.query import placer_named, query_of
from thalweg.overlay.sand.zones import cut, zone_tops
from thalweg.placement.sand.parts import Operator, Source, make_tree
from thalweg.placement.sand.placing import place


def view_of(latency_us):
    names = addresses(len(latency_us))
    return {
        (names[a], names[b]): int(latency_us[a, b])
        for a in range(len(names))
        for b in range(a + 1, len(names))
    }


def placed_by_zones(query, view, met=()):
    """Costs from the lowest zone up, then places from the root down."""
    told, plans = {}, {}
    zones = cut(query)
    for zone in zones:
        for child in zone.boundary:
            if child.source is not None:
                told[child.node] = told_of_source(child.source, met)
        plan = place_zone(zone, {b.node: told[b.node] for b in zone.boundary}, view)
        assert plan is not None
        plans[zone.top], told[zone.top] = plan, plan.told()
    at = {query.root: query.proxy}
    for zone in reversed(zones):
        assert plans[zone.top].can_stand(at[zone.top])
        at.update(plans[zone.top].stand(at[zone.top]))
    return at


@settings(max_examples=examples(100), deadline=None)
@given(drawn(), st.sampled_from(["edge", "edge+"]), st.integers(1, 3))
def test_zones_come_to_the_centralised_outcome_over_what_messages_carry(
    instance, algorithm, levels
):
    tree, latency_us, ways = instance
    names = addresses(len(latency_us))
    query = query_of(tree, names, algorithm, levels)
    expected = centralised(
        tree, ways, placer_named(algorithm, 0), algorithm, zone_tops(query, tree)
    )
    found = placed_by_zones(query, view_of(latency_us))
    assert found == {node: names[place] for node, place in enumerate(expected)}


@settings(max_examples=examples(40), deadline=None)
@given(drawn(), st.integers(0, 5), st.integers(1, 3))
def test_where_routes_meet_everybody_in_network_is_the_centralised_algorithm(instance, k, levels):
    """Every zone then knows every host, and is told the costs at all of them."""
    tree, latency_us, ways = instance
    names = addresses(len(latency_us))
    query = query_of(tree, names, "in-network", levels, k)
    found = placed_by_zones(query, view_of(latency_us), met=tuple(names))
    expected = place(tree, ways, placer_named("in-network", k))
    assert found == {node: names[place] for node, place in enumerate(expected.tolist())}


def test_what_messages_leave_out_can_matter():
    """Else the law above would say no more than that the algorithm is the same."""
    tree = make_tree(
        "t",
        (Source("a", 1.0, 0), Source("b", 1.0, 1), Source("c", 20.0, 2)),
        (Operator("grows", ("a", "b"), 4.0), Operator("join", ("grows", "c"), 0.1)),
        3,
    )
    grows, names = tree.names.index("grows"), addresses(4)
    whole = place(tree, line(0, 5, 9, 14), placer_named("edge", 0))
    assert names[whole[grows]] == "h002"  # where the join stands: both inputs go there
    assert placed_by_zones(query_of(tree, names, "edge", 2), {})[grows] == "h002"
    # On its own it tells no cost at h002, at which it has no source: it stays at one of its own.
    assert placed_by_zones(query_of(tree, names, "edge", 1), {})[grows] == "h000"


def join_zone(bound_ms=inf):
    tree = make_tree(
        "t",
        (Source("a", 8.0, 0), Source("b", 5.0, 1)),
        (Operator("join", ("a", "b"), 0.1),),
        2,
        bound_ms,
    )
    (zone,) = cut(query_of(tree, addresses(3), "edge", 1))
    return zone


def two_sources():
    return {0: told_of_source("h000", ()), 1: told_of_source("h001", ())}


def test_a_host_that_can_not_be_used_gets_no_operator():
    zone = join_zone()
    plan = place_zone(zone, two_sources(), {})
    assert plan.stand("h002")[2] == "h000"
    plan = place_zone(zone, two_sources(), {}, unusable=("h001",))
    assert plan is None  # the source itself is there: nothing can be done
    told = {**two_sources(), 0: Told("h000", ("h000",), (("h000", 3.0, 0.0), ("h002", 9.0, 0.0)))}
    assert place_zone(zone, told, {}, unusable=("h000",)).stand("h002")[0] == "h002"


def test_a_bound_that_nothing_meets_leaves_no_plan():
    far = {("h000", "h001"): 9_000, ("h000", "h002"): 9_000, ("h001", "h002"): 9_000}
    assert place_zone(join_zone(bound_ms=9.0), two_sources(), far) is not None
    assert place_zone(join_zone(bound_ms=8.9), two_sources(), far) is None


def test_a_way_that_was_not_measured_is_bounded_by_the_way_over_the_proxy():
    known = {("h000", "h002"): 4_000, ("h001", "h002"): 5_000}
    plan = place_zone(join_zone(bound_ms=13.0), two_sources(), known)
    # b to a over the proxy takes 9 ms, and from there 4 ms to the proxy.
    assert plan.stand("h002")[2] == "h000"
    plan = place_zone(join_zone(bound_ms=12.9), two_sources(), known)
    assert plan.stand("h002")[2] != "h000"


def test_in_network_uses_the_peers_that_were_met():
    tree = make_tree(
        "t",
        (Source("a", 8.0, 0), Source("b", 8.0, 1)),
        (Operator("join", ("a", "b"), 1.0),),
        2,
    )
    (zone,) = cut(query_of(tree, addresses(4), "in-network", 1))
    star = {("h000", "h003"): 5, ("h001", "h003"): 5, ("h002", "h003"): 5}
    star |= {("h000", "h001"): 10, ("h000", "h002"): 10, ("h001", "h002"): 10}
    star = {pair: ms * 1_000 for pair, ms in star.items()}
    met = {node: told_of_source(t.best, ("h003",)) for node, t in two_sources().items()}
    assert place_zone(zone, met, star).stand("h002")[2] == "h003"
    assert place_zone(zone, two_sources(), star).stand("h002")[2] != "h003"
