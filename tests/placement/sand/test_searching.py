"""The search within a bound on latency is complete below what it may cost, and silent above."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.drawn import examples
from tests.placement.sand.test_strategies import brute_force
from tests.placement.sand.trees import Drawn, drawn

from thalweg.placement.sand.dynamic import all_hosts, earliest
from thalweg.placement.sand.multipliers import narrow
from thalweg.placement.sand.placeable import limit_ms
from thalweg.placement.sand.searching import search


@settings(max_examples=examples(50))
@given(
    drawn(most_hosts=5, most_sources=5),
    st.sampled_from([1.0, 1.1, 1.3, 1.6, 2.0]),
    st.floats(0.0, 1.5),
)
def test_the_cheapest_is_found_if_it_costs_no_more_than_allowed(
    instance: Drawn, slack: float, share: float
) -> None:
    latency = instance.ways.latency_ms
    assume(len(latency) ** len(instance.tree.operators) <= 700)
    _, fastest = brute_force(instance.tree, latency)
    tree = instance.bounded(fastest * slack)
    cheapest, _ = brute_force(tree, latency)
    known = earliest(tree, latency)
    narrowed = narrow(tree, all_hosts(tree, len(latency)), latency, limit_ms(tree), known)
    assert narrowed.least <= cheapest * (1 + 1e-9) + 1e-9
    assert tree.cost(narrowed.at, latency) == narrowed.cost >= cheapest * (1 - 1e-9)
    most = min(narrowed.cost, narrowed.least + share * (narrowed.cost - narrowed.least))
    most *= 1 + 1e-9
    at = search(tree, narrowed, latency, limit_ms(tree), most)
    if cheapest <= most * (1 - 1e-8):
        assert at is not None
        assert np.isclose(tree.cost(at, latency), cheapest)
    elif cheapest > most * (1 + 1e-8):
        assert at is None
    if at is not None:
        assert tree.cost(at, latency) <= most * (1 + 1e-9)
        assert tree.delay_ms(at, latency) <= limit_ms(tree)
