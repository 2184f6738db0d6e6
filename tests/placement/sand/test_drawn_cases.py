"""The random trees of these tests reach what they are meant to test."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
from tests.placement.sand.trees import grow

from thalweg.placement.arrays import NONE
from thalweg.placement.sand.configurations import Ways
from thalweg.placement.sand.edge import edge, three_cases
from thalweg.placement.sand.edge_plus import edge_plus
from thalweg.placement.sand.in_network import in_network
from thalweg.placement.sand.optimal import optimal
from thalweg.placement.sand.placeable import direct_ms
from thalweg.placement.sand.placing import place


def test_every_case_of_the_algorithms_occurs() -> None:
    seen: Counter[str] = Counter()
    for seed in range(120):
        rng = np.random.default_rng(seed)
        hosts = int(rng.integers(4, 80))
        places = rng.random((hosts, 2)) * 100
        distance = np.linalg.norm(places[:, None] - places[None, :], axis=2)
        ways = Ways(distance, distance)
        tree = grow(rng, hosts, int(rng.integers(2, 10)), pins=0.1)

        def watched(inputs, asked, given, seen=seen):
            found = edge(inputs, asked, given)
            if asked.pinned == NONE:
                cases = three_cases(inputs, asked)
                seen["largest input"] += found.best == cases[0]
                seen["common location"] += found.best in cases[1:-1] and found.best != cases[0]
                seen["proxy"] += found.best == cases[-1] and found.best not in cases[:-1]
            seen["pinned"] += asked.pinned != NONE
            return found

        by_edge = place(tree, ways, watched)
        near, between = place(tree, ways, edge_plus), place(tree, ways, in_network(20))
        seen["edge+ is cheaper"] += tree.cost(near, distance) < tree.cost(by_edge, distance) - 1e-9
        seen["in-network is cheaper"] += (
            tree.cost(between, distance) < tree.cost(near, distance) - 1e-9
        )
        free = tree.cost(optimal(tree, ways), distance)
        tight = replace(tree, bound_ms=1.1 * direct_ms(tree, distance))
        place(tight, ways, watched)  # without a bound, an input's place is never dearer
        seen["a bound costs"] += tree.cost(optimal(tight, ways), distance) > free + 1e-9
    lacking = {
        case
        for case in (
            "largest input", "common location", "proxy", "pinned", "edge+ is cheaper",
            "in-network is cheaper", "a bound costs",
        )
        if seen[case] < 5
    }  # fmt: skip
    assert not lacking, seen
