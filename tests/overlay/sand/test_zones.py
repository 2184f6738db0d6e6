"""Trees cut into zones, and what each coordinator is told of its own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.overlay.sand.networks import addresses, drawn

from thalweg.overlay.sand.query import query_of
from thalweg.overlay.sand.zones import cut
from thalweg.placement.arrays import NONE
from thalweg.placement.sand.parts import Operator, Source, make_tree


def chain_of_three():
    """a, b → low → (with c) middle → (with d) high → proxy."""
    return make_tree(
        "t",
        (Source("a", 4.0, 0), Source("b", 4.0, 1), Source("c", 4.0, 1), Source("d", 4.0, 0)),
        (
            Operator("low", ("a", "b"), 0.5),
            Operator("middle", ("low", "c"), 0.5, 2),
            Operator("high", ("middle", "d"), 0.5),
        ),
        3,
    )


def zones_by_name(tree, levels):
    zones = cut(query_of(tree, addresses(4), "edge", levels))
    return {tree.names[z.top]: z for z in zones}


def test_every_level_is_a_zone_and_the_root_goes_with_the_highest():
    tree = chain_of_three()
    zones = zones_by_name(tree, 1)
    assert {top: [tree.names[o.node] for o in zone.operators] for top, zone in zones.items()} == {
        "low": ["low"],
        "middle": ["middle"],
        "proxy": ["high", "proxy"],
    }
    assert tree.names[zones["low"].above] == "middle"
    assert zones["proxy"].above == NONE


def test_two_levels_are_one_zone():
    tree = chain_of_three()
    zones = zones_by_name(tree, 2)
    assert {top: [tree.names[o.node] for o in zone.operators] for top, zone in zones.items()} == {
        "middle": ["low", "middle"],
        "proxy": ["high", "proxy"],
    }


def test_a_zone_knows_what_comes_from_below_and_from_where():
    tree = chain_of_three()
    boundary = zones_by_name(tree, 1)["middle"].boundary
    assert {tree.names[b.node]: b.source for b in boundary} == {"low": None, "c": "h001"}


def test_results_pass_pinned_operators_on_the_way_to_the_proxy():
    zones = zones_by_name(chain_of_three(), 1)
    assert zones["low"].onward == ("h002", "h003")
    assert zones["middle"].onward == ("h003",)


def test_common_locations_of_all_ancestors_that_have_a_choice_are_told():
    zones = zones_by_name(chain_of_three(), 1)
    # Of high: sources at h000 and h001 lie below middle, and h000 below d. Middle is pinned.
    assert zones["low"].common == ("h000",)
    assert zones["middle"].common == ("h000",)
    assert zones["proxy"].common == ()


@given(drawn(), st.integers(1, 4))
def test_every_operator_is_in_one_zone_whose_inputs_are_known(instance, levels):
    tree, latency_us, _ = instance
    zones = cut(query_of(tree, addresses(len(latency_us)), "edge", levels))
    placed = [o.node for zone in zones for o in zone.operators]
    assert sorted(placed) == [n for n in range(len(tree)) if tree.inputs[n]]
    tops = {zone.top for zone in zones}
    done = set()
    for zone in zones:
        for child in zone.boundary:
            assert (child.node in tops) == (child.source is None)
            assert child.source is not None or child.node in done  # lower zones come first
        inside = {o.node for o in zone.operators}
        outside = {b.node for b in zone.boundary}
        assert {i for o in zone.operators for i in o.inputs} <= inside | outside
        done.add(zone.top)


@pytest.mark.parametrize("levels", [1, 2, 3, 4, 6, 9])
def test_a_balanced_tree_has_as_many_zones_as_its_shape_says(levels):
    depth = 6
    sources = tuple(Source(f"s{i}", 1.0, 0) for i in range(2**depth))
    operators, level = [], [s.name for s in sources]
    while len(level) > 1:
        pairs = [tuple(level[i : i + 2]) for i in range(0, len(level), 2)]
        level = [f"o{len(operators) + i}" for i in range(len(pairs))]
        operators += [Operator(n, p, 0.5) for n, p in zip(level, pairs, strict=True)]
    tree = make_tree("t", sources, tuple(operators), 0)
    zones = cut(query_of(tree, addresses(1), "edge", levels))
    full = [2 ** (depth - height) for height in range(levels, depth, levels)]
    assert len(zones) == sum(full) + 1


@given(drawn(), st.integers(1, 4))
def test_no_zone_is_deeper_than_asked_for(instance, levels):
    tree, latency_us, _ = instance
    for zone in cut(query_of(tree, addresses(len(latency_us)), "edge", levels)):
        depth = {}
        for operator in zone.operators:
            below = max((depth.get(i, 0) for i in operator.inputs), default=0)
            depth[operator.node] = below + (operator.node != tree.root)
        assert max(depth.values()) <= levels
