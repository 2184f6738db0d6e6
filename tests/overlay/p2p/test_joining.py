"""Dataflow, MJoin and SteMs of one node against all combinations by brute force."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.overlay.p2p.dataflow import Dataflow
from thalweg.overlay.p2p.mjoin import probe
from thalweg.overlay.p2p.planning import explain, plan_joins
from thalweg.overlay.p2p.query import (
    BadQuery,
    Between,
    Condition,
    JoinQuery,
    Leaf,
    combinations,
    from_text,
    to_text,
)
from thalweg.overlay.p2p.stems import LEAST_MATCHED, Stems
from thalweg.overlay.p2p.tuples import Buckets, Tup, ids_of, without


def _query(equalities, streams="XYZ", window=5, name="q", conditions=()):
    leaves = tuple(Leaf(s, window, tuple(conditions)) for s in streams)
    comparisons = [Between(a, b, "=", c, d) for (a, b), (c, d) in equalities]
    joins, rest = plan_joins(leaves, comparisons, {})
    outputs = tuple((i, 1) for i in range(len(streams)))
    return JoinQuery(name, "n1", leaves, joins, outputs, rest)


TYPE_1 = [((0, 0), (1, 0)), ((1, 0), (2, 0))]
CHAIN = [((0, 0), (1, 0)), ((1, 1), (2, 1))]
CYCLE = [((0, 0), (1, 0)), ((1, 1), (2, 1)), ((0, 1), (2, 0))]

tuples = st.lists(
    st.tuples(
        st.sampled_from("XYZ"),
        st.integers(0, 12),
        st.tuples(st.one_of(st.none(), st.integers(0, 2)), st.integers(0, 2)),
    ),
    max_size=14,
)


def _run(query, arrivals):
    """All of a plan at one node: what an item makes goes on at once."""
    dataflow, stems, found = Dataflow([query]), Stems(), []

    def take(stem, parts):
        stems.add(stem.name, stem.key(parts), parts, stem.end(parts))
        for operator, port in stem.readers:
            for output in probe(operator, port, parts, stem.key(parts), stems.get):
                found.extend(output for _ in operator.queries) if operator.queries else None
                for consumer in operator.consumers:
                    if consumer.key(output) is not None:
                        take(consumer, output)

    for tup in arrivals:
        for stem in dataflow.stems_for(tup):
            take(stem, (tup,))
    return found


@given(tuples, st.sampled_from([TYPE_1, CHAIN, CYCLE]))
def test_all_combinations_and_each_once(rows, equalities):
    query = _query(equalities, conditions=[Condition(1, "<=", 1)])
    arrivals = [Tup(s, s, i, ts, values) for i, (s, ts, values) in enumerate(rows)]
    by_stream = {s: [t for t in arrivals if t.stream == s] for s in "XYZ"}
    found = sorted(ids_of(parts) for parts in _run(query, arrivals))
    assert found == sorted(ids_of(parts) for parts in combinations(query, by_stream))


def test_a_type_1_query_is_one_join_and_a_chain_is_two():
    assert _query(TYPE_1).is_type_1
    assert len(_query(CHAIN).joins) == 2
    assert explain(_query(CHAIN))[0].startswith("peers, type 2")


def test_equal_segments_of_two_queries_are_one():
    chain = _query(CHAIN, name="a")
    pair = _query([((0, 0), (1, 0))], streams="XY", name="b")
    flow = Dataflow([chain, pair])
    shared = [o for o in flow.operators.values() if o.queries == ["b"]]
    assert len(flow.operators) == 2
    assert shared[0].consumers


def test_a_join_without_an_equality_is_refused():
    with pytest.raises(BadQuery, match="nothing to hash on"):
        _query([((0, 0), (1, 0))])


def test_a_tuple_that_no_query_wants_is_not_indexed():
    flow = Dataflow([_query(TYPE_1, conditions=[Condition(1, "<", 5)])])
    assert [s.name for s in flow.stems_for(Tup("X", "s", 0, 0, (1, 4)))] == ["X.0"]
    assert flow.stems_for(Tup("X", "s", 0, 0, (1, 5))) == []
    assert flow.stems_for(Tup("X", "s", 0, 0, (None, 4))) == []
    assert flow.stems_for(Tup("W", "s", 0, 0, (1, 4))) == []


def test_a_query_survives_its_journey_as_text():
    query = _query(CYCLE, conditions=[Condition(1, "=", "é"), Condition(0, ">", 1.5)])
    assert from_text(to_text(query)) == query


def test_the_oldest_is_shed_and_completeness_says_so():
    stems = Stems(room=2)
    for i in range(4):
        stems.add("X.0", i, (Tup("X", "s", i, i, (i,)),), end=i + 10)
    assert stems.size == 2
    assert not stems.get("X.0", 0)
    assert stems.completeness(["X.0"]) == 0.5
    assert stems.completeness(["X.0", "X.0"]) == 0.25
    stems.purge(11, ["X.0"])  # what was shed would be gone by now, too
    assert stems.completeness(["X.0"]) == 1.0


def test_what_meets_nobody_is_shed_first_where_asked_for():
    stems = Stems(room=2, policy=LEAST_MATCHED)
    stems.add("X.0", 1, (Tup("X", "s", 1, 1, (1,)),), end=11)
    stems.matched("X.0", 1, 3)
    stems.add("X.0", 2, (Tup("X", "s", 2, 2, (2,)),), end=12)
    stems.add("X.0", 3, (Tup("X", "s", 3, 3, (3,)),), end=13)
    assert stems.get("X.0", 1)
    assert not stems.get("X.0", 2)


@given(st.integers(0, (1 << 64) - 1), st.integers(0, (1 << 64) - 1))
def test_a_nodes_buckets_are_those_whose_last_hash_it_owns(before, own):
    buckets = Buckets(16)
    found = {b for first, last in buckets.between(before, own) for b in range(first, last + 1)}
    size = (own - before) % (1 << 64) or 1 << 64
    wanted = {
        b for b in range(16) if 0 < ((buckets.position(b) - before) % (1 << 64) or 1 << 64) <= size
    }
    assert found == wanted


def test_runs_without_others():
    assert without(((0, 9),), [(3, 4), (9, 12)]) == ((0, 2), (5, 8))
    assert without(((0, 9),), [(0, 9)]) == ()


def test_completeness_counts_what_the_join_below_had_shed():
    stems = Stems()
    for i in range(4):
        stems.add("XY.0", i, (Tup("X", "s", i, i, (i,)),), end=i + 10, share=0.5)
    assert stems.completeness(["XY.0"]) == 0.5
    stems.add("XY.0", 9, (Tup("X", "s", 9, 9, (9,)),), end=20, share=1.0)
    assert stems.completeness(["XY.0"]) == 5 / 9
