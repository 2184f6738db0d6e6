"""Queries of the algebra as joins across nodes: the join and what is above it are the query."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.drawn import examples

from thalweg.cql import compile_script
from thalweg.engine import reference
from thalweg.engine.arrivals import Arrival
from thalweg.placement.swap.assigning import assigned
from thalweg.placement.swap.from_plan import swap_join
from thalweg.placement.swap.join_graph import Edge, JoinGraph, JoinGraphError
from thalweg.plan.cutting import part_schema
from thalweg.runtime.data.profiles import profile_of, where_of

STREAMS = (
    "CREATE STREAM R (a BIGINT, x DOUBLE, unread BIGINT) TIMESTAMP BY ts BIGINT; "
    "CREATE STREAM S (a BIGINT, b BIGINT) TIMESTAMP BY ts BIGINT; "
    "CREATE STREAM T (b BIGINT, z VARCHAR, d DECIMAL(2)) TIMESTAMP BY ts BIGINT; "
    "CREATE TABLE Names (a BIGINT, name VARCHAR, PRIMARY KEY (a)); "
)
JOIN = "FROM R [Range 10] R, S [Range 20] S, T [Now] T WHERE R.a = S.a AND S.b = T.b"


def plan_of(select):
    return compile_script(f"{STREAMS}CREATE QUERY q AS {select}").queries[0].plan


def join_of(select):
    plan = plan_of(select)
    return swap_join(
        plan,
        lambda stream, condition: where_of(stream, frozenset({condition})),
        lambda stream: profile_of(plan, stream).columns,
    )


def told(join):
    return [(g.stream.name, g.window, g.where, g.column_names) for g in join.legs]


def test_conditions_of_one_stream_are_its_homes_affair():
    join = join_of(f"SELECT R.x, T.z {JOIN} AND R.x > 3 AND R.x < S.b")
    assert told(join) == [
        ("R", 10, ("x > 3.0",), ("a", "x")),
        ("S", 20, None, ("a", "b")),
        ("T", 0, None, ("b", "z")),
    ]
    assert join.graph.edges == (Edge(0, 0, 1, 0), Edge(1, 1, 2, 0))
    assert join.outputs == ((0, 1), (1, 1), (2, 1))


def test_columns_that_nobody_looks_at_do_not_travel():
    join = join_of(f"SELECT T.z, COUNT(*) AS n {JOIN} GROUP BY T.z")
    assert told(join) == [
        ("R", 10, None, ("a",)),
        ("S", 20, None, ("a", "b")),
        ("T", 0, None, ("b", "z")),
    ]
    assert join_of("SELECT COUNT(*) AS n FROM R [Now], S [Now] WHERE R.a = S.a").from_beginning


def test_a_stream_that_is_read_twice_is_two():
    join = join_of("SELECT A.x FROM R [Now] A, R [Range 3] B WHERE A.a = B.a AND B.x < 7")
    assert join.graph.streams == ("R", "R#2")
    assert told(join) == [("R", 0, None, ("a", "x")), ("R", 3, ("x < 7.0",), ("a",))]


def test_a_cycle_is_broken_and_what_closes_it_is_a_condition():
    join = join_of(
        "SELECT T.z FROM R [Now] R, S [Now] S, T [Now] T "
        "WHERE R.a = S.a AND S.b = T.b AND R.unread = T.b"
    )
    assert len(join.graph.edges) == 2
    assert join.graph.conditions == (Edge(0, 1, 2, 0),)


@pytest.mark.parametrize(
    ("select", "why"),
    [
        ("SELECT R.a FROM R [Now] R, S [Now] S", "no equality"),
        ("SELECT R.a FROM R [Now] R, S [Now] S WHERE R.a = S.a + 1", "no equality"),
        ("SELECT R.a FROM R [Now] R, S [Now] S WHERE R.x = S.a", "no equality"),
        ("SELECT R.a FROM R [Rows 3] R, S [Now] S WHERE R.a = S.a", "window [Rows 3]"),
        ("SELECT R.a FROM R [Range 4 Slide 2] R, S [Now] S WHERE R.a = S.a", "slides"),
        ("SELECT N.name FROM R [Now] R, Names N WHERE R.a = N.a", "Names is a table"),
        ("SELECT RSTREAM R.a FROM R [Now] R, S [Now] S WHERE R.a = S.a", "RSTREAM"),
        ("SELECT R.a FROM R [Now] R LEFT JOIN S [Now] S ON R.a = S.a", "joins nothing"),
        ("SELECT R.a FROM R [Now] R", "joins nothing"),
        (
            "SELECT R.a FROM R [Now] R, (SELECT a, COUNT(*) AS n FROM S [Now] GROUP BY a) C "
            "WHERE R.a = C.a",
            "Aggregate stands below the join",
        ),
    ],
)
def test_what_nodes_cannot_join_is_refused_with_the_way_that_works(select, why):
    with pytest.raises(JoinGraphError) as refused:
        join_of(select)
    assert why in str(refused.value)
    assert "without --plan swap it runs" in str(refused.value)


SELECTS = [
    f"SELECT R.x, T.z, S.b {JOIN} AND R.x > 1 AND R.x < S.b",
    f"SELECT T.z, COUNT(*) AS n, SUM(R.x) AS total {JOIN} GROUP BY T.z HAVING COUNT(*) > 1",
    f"SELECT DISTINCT R.a + 1 AS a, T.d {JOIN} AND R.a + S.b > 1",
    "SELECT ISTREAM A.x, B.x AS other FROM R [Range 3] A, R [Unbounded] B WHERE A.a = B.a",
    "SELECT R.a FROM R [Range 3] R, S [Range 9] S, T [Range 2] T "
    "WHERE R.a = S.a AND S.b = T.b AND R.unread = T.b",
]
SMALL = st.integers(0, 2) | st.none()
ROWS = st.lists(st.tuples(SMALL, SMALL), max_size=12)


@settings(max_examples=examples(20), deadline=None)
@given(select=st.sampled_from(SELECTS), r=ROWS, s=ROWS, t=ROWS)
def test_the_join_and_what_is_above_it_are_the_query(select, r, s, t):
    """What is above, over the changes of the part, says what the query says."""
    inputs = {
        "R": [_arrival(i, (a, None if b is None else b / 2 + 1, b)) for i, (a, b) in enumerate(r)],
        "S": [_arrival(i, (a, b)) for i, (a, b) in enumerate(s)],
        "T": [_arrival(i, (a, None if b is None else f"v{b}", None)) for i, (a, b) in enumerate(t)],
    }
    join = join_of(select)
    mirror = part_schema(join.part, "swap/it")
    part = reference.evaluate(join.part, inputs)
    changes = [Arrival(0, c.ts, i, c.row, c.op) for i, c in enumerate(part)]
    above = reference.evaluate(join.above(mirror), {mirror.name: changes})
    assert list(above) == list(reference.evaluate(plan_of(select), inputs))


def _arrival(place, values):
    return Arrival(0, place, place, values)


def test_an_edge_is_joined_at_the_end_of_a_chain_so_that_the_middle_may_choose():
    chain = JoinGraph(("R", "S", "T"), (Edge(0, 0, 1, 0), Edge(1, 1, 2, 0)))
    assert assigned(chain, ("r", "s", "t"), {1: 100.0}) == ["r", "t"]
    pair = JoinGraph(("R", "S"), (Edge(0, 0, 1, 0),))
    assert assigned(pair, ("r", "s"), {0: 1.0, 1: 9.0}) == ["s"]
    assert assigned(pair, ("r", "s"), {}) == ["r"]
