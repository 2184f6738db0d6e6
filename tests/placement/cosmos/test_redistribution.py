"""Rounds of redistribution: what has changed is put right, at few migrations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.placement.cosmos.systems import proxies, system

from thalweg.placement.arrays import floats, ints
from thalweg.placement.cosmos.cost import imbalance, loads, weighted_edge_cut
from thalweg.placement.cosmos.distribution import distribute
from thalweg.placement.cosmos.model import Balance, Substreams
from thalweg.placement.cosmos.redistribution import Adaptation, redistribute
from thalweg.placement.cosmos.system import Settings, System

SETTINGS = Settings(most_vertices=80)
ADAPTATION = Adaptation(SETTINGS)


def cut(made: System, mapping: np.ndarray) -> float:
    return weighted_edge_cut(made.network, made.substreams, made.queries, mapping).total


def uneven(made: System, mapping: np.ndarray) -> float:
    load = loads(made.queries.weight, mapping, len(made.network))
    return imbalance(load, made.network.capability)


def changed(made: System, factor: float, seed: int) -> System:
    """Some substreams have other rates, and queries the load that follows."""
    rng = np.random.default_rng(seed)
    rate = np.array(made.substreams.rate_bps)
    rate[rng.permutation(len(rate))[: len(rate) // 6]] *= factor
    substreams = Substreams(floats(rate), made.substreams.source)
    queries = replace(made.queries, weight=floats(made.queries.interests @ rate))
    return System(made.network, made.root, substreams, queries)


def large(seed: int) -> System:
    return system(seed, providers=16, queries=500, substreams=120, k=3)


@settings(max_examples=4, deadline=None)
@given(st.integers(0, 99))
def test_after_a_change_of_rates_the_bound_holds_again(seed: int) -> None:
    made = large(seed)
    before = distribute(made, proxies(made), SETTINGS)
    after = changed(made, 4.0, seed)
    found = redistribute(after, before, ADAPTATION)
    limits = after.limits(Balance())
    load = loads(after.queries.weight, found, 16)
    assert (load <= limits + after.queries.weight.max()).all()
    assert uneven(after, found) <= max(1.1 + 1e-6, uneven(after, before))


def test_it_costs_nearly_as_little_as_mapping_anew_and_moves_far_less() -> None:
    ours, anew, still = [], [], []
    for seed in range(3):
        made = large(seed)
        before = distribute(made, proxies(made), SETTINGS)
        after = changed(made, 2.0, seed)
        fresh = distribute(after, proxies(after), SETTINGS)
        found = redistribute(after, before, ADAPTATION)
        ours.append((cut(after, found) / cut(after, fresh), np.mean(found != before)))
        anew.append(np.mean(fresh != before))
        still.append(uneven(after, before))
    cost, moved = np.mean(ours, axis=0)
    assert cost < 1.1
    assert moved < 0.6 * np.mean(anew)
    assert max(still) > 1.12  # there was something to put right


def test_from_a_random_start_rounds_come_near_to_a_distribution_that_knows() -> None:
    made = large(4)
    mapping = ints(np.random.default_rng(4).integers(16, size=500))
    random = cut(made, mapping)
    for round_ in range(4):
        adaptation = Adaptation(replace(SETTINGS, seed=round_))
        mapping = redistribute(made, mapping, adaptation)
    best = cut(made, distribute(made, proxies(made), SETTINGS))
    assert random - cut(made, mapping) > 0.9 * (random - best)
    assert uneven(made, mapping) <= 1.1 + 0.05


@settings(max_examples=4, deadline=None)
@given(st.integers(0, 99))
def test_within_the_bound_a_round_never_makes_things_worse(seed: int) -> None:
    made = large(seed)
    before = distribute(made, proxies(made), SETTINGS)
    for exchange in (True, False):
        settings_ = replace(SETTINGS, exchange=exchange, seed=seed)
        found = redistribute(made, before, Adaptation(settings_))
        assert cut(made, found) <= cut(made, before) * (1 + 1e-6)
        assert uneven(made, found) <= max(uneven(made, before), 1.1 + 1e-6)


def test_a_good_distribution_stays_nearly_as_it_is() -> None:
    made = large(6)
    before = distribute(made, proxies(made), SETTINGS)
    found = redistribute(made, before, ADAPTATION)
    assert np.mean(found != before) < 0.1


def test_the_same_seed_gives_the_same_round() -> None:
    made = large(7)
    before = proxies(made)
    one, other = (redistribute(made, before, ADAPTATION) for _ in range(2))
    assert (one == other).all()
