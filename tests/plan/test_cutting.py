"""Where a plan may be cut."""

from __future__ import annotations

import pytest

from thalweg.cql import compile_script
from thalweg.plan.cutting import at, cut, part_plan, part_schema, places, reach
from thalweg.plan.nodes import Aggregate, Join, Node, Scan, ToStream, walk
from thalweg.plan.types import BIGINT

STREAMS = """
CREATE STREAM A (k BIGINT, x DOUBLE) TIMESTAMP BY ts BIGINT;
CREATE STREAM B (k BIGINT, y VARCHAR) TIMESTAMP BY ts BIGINT;
CREATE TABLE T (k BIGINT, z VARCHAR);
"""


def plan_of(text: str) -> Node:
    return compile_script(STREAMS + text).queries[0].plan


def test_every_operator_over_streams_may_be_cut() -> None:
    plan = plan_of("SELECT A.k, y FROM A [Range 5], B [Now] WHERE A.k = B.k AND x > 1")
    kinds = [type(p.node).__name__ for p in places(plan)]
    scans = sum(isinstance(n, Scan) for n in walk(plan))
    assert len(kinds) == len(list(walk(plan))) - scans
    assert not any(p.from_beginning for p in places(plan))


def test_what_a_table_alone_holds_is_not_cut() -> None:
    plan = plan_of("SELECT A.k, z FROM A [Now], (SELECT * FROM T WHERE k > 1) T WHERE A.k = T.k")
    cuttable = [p.node for p in places(plan)]
    assert all(any(s.name == "A" for s in _streams(n)) for n in cuttable)


def test_nothing_is_cut_below_rstream() -> None:
    plan = plan_of("SELECT RSTREAM k FROM A [Range 5]")
    assert [p.path for p in places(plan)] == [()]


def test_below_an_inner_stream_and_a_lasting_row_only_from_the_beginning() -> None:
    plan = plan_of("SELECT COUNT(*) AS n FROM A [Range 5] WHERE x > 1")
    above = {p.path: p.from_beginning for p in places(plan)}
    lasting = next(p.path for p in places(plan) if isinstance(p.node, Aggregate))
    assert not above[lasting]
    assert all(late == (len(path) > len(lasting)) for path, late in above.items())
    plan = plan_of("SELECT k FROM (SELECT ISTREAM k FROM A [Range 5]) [Range 9] S")
    inner = next(p for p in places(plan) if isinstance(p.node, ToStream))
    assert inner.from_beginning


def test_a_reader_sees_the_part_as_it_was() -> None:
    plan = plan_of("SELECT A.k, B.k AS other FROM A [Range 5], B [Now] WHERE A.k = B.k")
    place = next(p for p in places(plan) if isinstance(p.node, Join))
    stream = part_schema(place.node, "part")
    assert [f.name for f in stream.fields] == ["c0", "c1", "c2", "c3"]
    assert part_plan(place.node).schema == stream.fields
    assert (stream.is_relation, stream.timestamp_type) == (True, BIGINT)
    made = cut(plan, place.path, stream)
    assert made.schema == plan.schema
    assert at(made, place.path).schema == place.node.schema


@pytest.mark.parametrize(
    ("text", "instants"),
    [
        ("SELECT k FROM A [Range 5]", 6),
        ("SELECT k FROM A [Range 10 Slide 5]", 15),
        ("SELECT k FROM A [Unbounded]", None),
        ("SELECT k FROM A [Rows 3]", None),
        ("SELECT COUNT(*) AS n FROM A [Range 5]", None),
        ("SELECT k, COUNT(*) AS n FROM A [Range 5] GROUP BY k", 6),
    ],
)
def test_how_long_a_plan_remembers(text: str, instants: int | None) -> None:
    assert reach(plan_of(text)) == instants


def _streams(node: Node) -> list[Scan]:
    return [n.stream for n in walk(node) if isinstance(n, Scan)]  # type: ignore[misc]
