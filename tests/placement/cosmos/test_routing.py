"""Online routing: the cheapest child at every level, one by one or many at once."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.placement.cosmos.systems import cut_by_pairs, proxies, system

from thalweg.placement.arrays import floats, ints
from thalweg.placement.cosmos.cost import weighted_edge_cut
from thalweg.placement.cosmos.distribution import distribute
from thalweg.placement.cosmos.hierarchy import Cluster
from thalweg.placement.cosmos.model import Balance
from thalweg.placement.cosmos.routing import Router
from thalweg.placement.cosmos.routing_table import choose, choose_many
from thalweg.placement.cosmos.system import Settings, System


def parted(made: System, first: int) -> tuple[System, System]:
    """The same system with the first queries only, and with all others."""
    which = np.arange(len(made.queries))
    return tuple(  # type: ignore[return-value]
        System(made.network, made.root, made.substreams, made.queries.chosen(some))
        for some in (which[:first], which[first:])
    )


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 999))
def test_with_one_coordinator_a_query_goes_where_the_cut_grows_least(seed: int) -> None:
    made = system(seed, providers=4, queries=12, k=3)
    assert made.root.height == 1
    old, new = parted(made, 11)
    at = ints(np.random.default_rng(seed).integers(4, size=11))
    found = Router(old, at).route(new.queries)
    cuts = [cut_by_pairs(made, ints([*at.tolist(), there])) for there in range(4)]
    assert cuts[int(found[0])] == pytest.approx(min(cuts), rel=1e-5)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 999))
def test_a_batch_of_one_is_one_by_one(seed: int) -> None:
    made = system(seed, providers=12, queries=60)
    old, new = parted(made, 40)
    at = distribute(old, proxies(old), Settings())
    for balance in (None, Balance(0.5)):
        one = Router(old, at, balance).route(new.queries)
        bulk = Router(old, at, balance).route_in_bulk(new.queries, batch=1)
        # Only what counts as room differs: a provider's own, or that of a whole cluster.
        assert balance is not None or (one == bulk).all()


def test_one_coordinators_part_is_that_of_the_whole_where_there_is_one_level() -> None:
    made = system(7, providers=4, queries=60, k=3)
    assert made.root.height == 1
    old, new = parted(made, 40)
    at = distribute(old, proxies(old), Settings())
    alone = Router(old, at).children_one_by_one(old.root, new.queries)
    whole = Router(old, at).route(new.queries)
    assert [old.root.children[c].centre for c in alone] == whole.tolist()


@pytest.mark.parametrize("one_by_one", [True, False])
def test_what_was_routed_is_in_the_tables(one_by_one: bool) -> None:
    made = system(5, providers=12, queries=200)
    old, new = parted(made, 120)
    at = distribute(old, proxies(old), Settings())
    router = Router(old, at)
    route = router.route if one_by_one else partial(router.route_in_bulk, batch=30)
    found = route(new.queries)
    afresh = Router(made, ints(np.concatenate([at, found])))
    root = router.desks[id(made.root)]
    assert root.table == pytest.approx(afresh.desks[id(made.root)].table, rel=1e-4, abs=1e-2)
    router.refresh()
    for cluster in made.root.coordinators():
        ours, theirs = router.desks[id(cluster)], afresh.desks[id(cluster)]
        assert ours.table == pytest.approx(theirs.table, rel=1e-4, abs=1e-2)
        assert ours.load == pytest.approx(theirs.load)


def test_bulk_costs_little_more_than_one_by_one() -> None:
    made = system(3, providers=20, queries=900, substreams=120, k=3)
    old, new = parted(made, 600)
    at = distribute(old, proxies(old), Settings(most_vertices=80))

    def cut(found: np.ndarray) -> float:
        mapping = ints(np.concatenate([at, found]))
        return weighted_edge_cut(made.network, made.substreams, made.queries, mapping).total

    one = cut(Router(old, at, Balance()).route(new.queries))
    bulk = cut(Router(old, at, Balance()).route_in_bulk(new.queries, batch=100))
    random = cut(proxies(new))
    assert bulk < 1.02 * one
    assert one < 0.97 * random


def test_with_a_bound_everybody_stays_within_it_but_for_one_query() -> None:
    made = system(8, providers=12, queries=400)
    old, new = parted(made, 300)
    at = distribute(old, proxies(old), Settings())
    limits = Balance().limits(made.queries.weight, made.network.capability)
    for found in (
        Router(old, at, Balance()).route(new.queries),
        Router(old, at, Balance()).route_in_bulk(new.queries, batch=50),
    ):
        mapping = np.concatenate([at, found])
        load = np.bincount(mapping, made.queries.weight, 12)
        assert (load <= limits + 2 * made.queries.weight.max()).all()


def test_without_a_bound_load_is_no_matter() -> None:
    """All want the same: without a bound they are best together, with one they are not."""
    made = system(4, providers=6, queries=60, substreams=3, wanted=3)
    old, new = parted(made, 6)
    at = ints(np.arange(6))
    assert len(set(Router(old, at).route(new.queries).tolist())) < 6
    assert len(set(Router(old, at, Balance(0.2)).route(new.queries).tolist())) == 6


def test_the_cheapest_child_with_room_is_chosen() -> None:
    assert choose(floats([1.0, 2.0]), 1.0, floats([1.0, 9.0])) == 0
    assert choose(floats([1.0, 2.0]), 1.0, floats([0.5, 9.0])) == 1
    assert choose(floats([1.0, 2.0]), 1.0, floats([0.2, 0.5])) == 1


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 9999), st.integers(1, 30), st.integers(1, 5))
def test_of_many_the_first_get_the_room(seed: int, queries: int, children: int) -> None:
    rng = np.random.default_rng(seed)
    cost = floats(rng.random((queries, children)))
    weight = floats(rng.uniform(0.5, 1.5, queries))
    room = floats(rng.uniform(0, 1.5 * queries / children, children))
    child = choose_many(cost, weight, room)
    added = np.bincount(child, weight, children)
    if weight.sum() <= room.sum() - 1.5 * children:
        assert (added <= room + 1e-9).all()
    enough = floats(np.full(children, 1e9))
    assert (choose_many(cost, weight, enough) == cost.argmin(axis=1)).all()


def test_a_single_provider_gets_everything() -> None:
    made = system(1, providers=1, queries=4)
    assert made.root.is_provider
    router = Router(made, ints([0, 0, 0, 0]))
    assert router.route(made.queries).tolist() == [0] * 4
    assert router.route_in_bulk(made.queries).tolist() == [0] * 4
    assert isinstance(made.root, Cluster)


def test_nothing_to_route() -> None:
    made = system(1, queries=40)
    router = Router(made, proxies(made))
    nobody = made.queries.chosen(np.zeros(0, int))
    assert router.route(nobody).tolist() == []
    assert router.route_in_bulk(nobody).tolist() == []
