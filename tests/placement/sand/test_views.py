"""A coordinator that knows a few locations places as one that knows them all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.placement.sand.trees import Drawn, drawn

from thalweg.placement.arrays import NONE, Ints, ints
from thalweg.placement.sand.configurations import Asked, Configurations, Placer, Ways, at_source
from thalweg.placement.sand.edge import edge
from thalweg.placement.sand.edge_plus import edge_plus
from thalweg.placement.sand.placing import place
from thalweg.placement.sand.views import restricted, seen_in, ways_between


def numbering(locations: Ints, hosts: int) -> Ints:
    number = np.full(hosts, NONE, np.int32)
    number[locations] = np.arange(len(locations))
    return ints(number)


def from_afar(placer: Placer, few: Ints) -> Placer:
    """Places in a view of its own, and tells in everybody's numbers where things stand."""

    def placed(inputs, asked: Asked, ways: Ways) -> Configurations:
        hosts = len(ways.latency_ms)
        number = numbering(few, hosts)
        seen = [seen_in(below, number, len(few)) for below in inputs]
        pinned = asked.pinned if asked.pinned == NONE else int(number[asked.pinned])
        here = replace(
            asked, proxy=int(number[asked.proxy]), room_ms=asked.room_ms[few], pinned=pinned
        )
        found = placer(seen, here, ways_between(ways, few))
        inputs_there = ints(np.where(found.inputs == NONE, NONE, few[found.inputs]))
        return seen_in(replace(found, inputs=inputs_there), few, hosts)

    return placed


@given(drawn(most_hosts=12, most_sources=7, metric=True), st.sampled_from([edge, edge_plus]))
def test_sources_and_proxy_are_all_that_edge_needs_to_know(instance: Drawn, placer: Placer) -> None:
    tree, ways = instance.tree, instance.ways
    few = np.unique(tree.pinned[tree.pinned != NONE]).astype(np.int32)
    narrow, whole = (place(tree, ways, p) for p in (from_afar(placer, few), placer))
    assert np.array_equal(narrow, whole)


def test_what_was_not_told_is_not_known() -> None:
    known = at_source(2, 5)
    everywhere = replace(known, cost=np.arange(5.0))
    assert restricted(everywhere, [4]).cost.tolist() == [np.inf, np.inf, 2, np.inf, 4]


def test_the_chosen_location_must_be_known() -> None:
    with pytest.raises(ValueError, match="must be known"):
        seen_in(at_source(2, 5), numbering(ints([0, 1]), 5), 2)
