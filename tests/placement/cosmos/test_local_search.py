"""Placing queries by one table costs what the graph's edges say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.placement.cosmos.systems import cut_by_pairs, system, systems

from thalweg.placement.arrays import ints
from thalweg.placement.cosmos.local_search import sweep
from thalweg.placement.cosmos.model import Balance
from thalweg.placement.cosmos.places import Places, place_in_order
from thalweg.placement.cosmos.system import Settings, System
from thalweg.placement.cosmos.view import global_view


@settings(max_examples=30, deadline=None)
@given(systems, st.integers(0, 999))
def test_costs_differ_as_the_cut_does(made: System, seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = len(made.network)
    start = ints(rng.integers(count, size=len(made.queries)))
    places = Places(made.queries, made.substreams, global_view(made, Balance()))
    places.put_all(made.queries, made.substreams, start)
    v = int(rng.integers(len(start)))
    costs, before = places.costs(v), cut_by_pairs(made, start)
    assert costs == pytest.approx(places.all_costs(0, len(start))[v], rel=1e-3, abs=before * 1e-5)
    to = int(rng.integers(count))
    places.put(v, to)
    lost = before - cut_by_pairs(made, places.mapping)
    assert costs[start[v]] - costs[to] == pytest.approx(lost, rel=1e-3, abs=before * 1e-5)


@settings(max_examples=20, deadline=None)
@given(systems)
def test_putting_one_by_one_gives_the_table_of_putting_all(made: System) -> None:
    seen = global_view(made, Balance())
    one = Places(made.queries, made.substreams, seen)
    place_in_order(one, range(len(made.queries)))
    everyone = Places(made.queries, made.substreams, seen)
    everyone.put_all(made.queries, made.substreams, ints(one.mapping))
    assert one.table == pytest.approx(everyone.table, rel=1e-4, abs=1e-2)
    assert one.load == pytest.approx(everyone.load)


@settings(max_examples=20, deadline=None)
@given(systems, st.integers(0, 99))
def test_a_sweep_relieves_the_crowded_and_then_only_improves(made: System, seed: int) -> None:
    rng = np.random.default_rng(seed)
    loose = Settings(balance=Balance(1e6))
    start = ints(rng.integers(len(made.network), size=len(made.queries)))
    swept = sweep(made.queries, made.substreams, global_view(made, loose.balance), start)
    assert cut_by_pairs(made, swept) <= cut_by_pairs(made, start) * (1 + 1e-5)


def test_all_at_one_place_is_too_much() -> None:
    made = system(3, queries=200)
    settings = Settings(balance=Balance(0.2))
    start = ints(np.zeros(200, np.int32))
    swept = sweep(made.queries, made.substreams, global_view(made, settings.balance), start)
    load = np.bincount(swept, made.queries.weight, len(made.network))
    assert (load <= made.limits(settings.balance) * (1 + 1e-6)).all()
