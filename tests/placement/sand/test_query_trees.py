"""Queries of a problem become trees, CQL queries included."""

from __future__ import annotations

import numpy as np
import pytest
from tests.placement.problems import TWO_WAY, problem_of

from thalweg.cql.compile import compile_script
from thalweg.placement.arrays import NONE, floats
from thalweg.placement.from_cql.problem import Measured, problem_of_queries
from thalweg.placement.problem import Hosts, Problem, ProblemError
from thalweg.placement.sand.query_trees import MOST_NODES, query_tree, ways_of

STREAMS = """
CREATE STREAM A (k INT, x INT, ts BIGINT) TIMESTAMP BY ts;
CREATE STREAM B (k INT, y INT, ts BIGINT) TIMESTAMP BY ts;
CREATE STREAM C (y INT, z INT, ts BIGINT) TIMESTAMP BY ts;
"""


def problem_from(select: str, **rates: float) -> Problem:
    queries = compile_script(f"{STREAMS} CREATE QUERY q AS {select};").queries
    hosts = Hosts(("h0", "h1", "h2"), *(floats(np.full(3, np.inf)) for _ in range(3)))
    measured = Measured({"A": 0, "B": 1, "C": 2}, rates)
    return problem_of_queries(hosts, queries, measured, [2])


THREE_WAY = (
    "SELECT A.x, C.z FROM A [RANGE 5 SECONDS], B [RANGE 5 SECONDS], C [RANGE 5 SECONDS] "
    "WHERE A.k = B.k AND B.y = C.y"
)


def test_the_join_order_is_the_one_with_the_lightest_streams() -> None:
    light = query_tree(problem_from(THREE_WAY, A=1, B=10, C=100), 0)
    assert light.tree.names[:3] == ("A", "B", light.tree.names[2])
    heavy = query_tree(problem_from(THREE_WAY, A=100, B=10, C=1), 0)
    assert heavy.tree.names[:3] == ("A", "B", "C")  # A waits for B ⋈ C


def test_nodes_know_their_streams_and_operators() -> None:
    problem = problem_from(THREE_WAY, A=1, B=10, C=100)
    found = query_tree(problem, 0)
    for node in range(found.tree.root):
        stream, operator = found.streams[node], found.operators[node]
        below = [found.streams[i] for i in found.tree.inputs[node]]
        if operator == NONE:
            assert problem.streams.home[stream] == found.tree.pinned[node]
        else:
            assert problem.operators.output[operator] == stream
            assert problem.operators.inputs[operator].tolist() == below
    assert found.tree.proxy == 2


def test_a_stream_that_joins_itself_is_two_sources() -> None:
    problem = problem_from(
        "SELECT L.x FROM A [RANGE 5 SECONDS] AS L, A [RANGE 9 SECONDS] AS R WHERE L.k = R.k", A=1
    )
    names = [query_tree(problem, 0).tree.names[s] for s in query_tree(problem, 0).tree.sources]
    assert names == ["A", "A"]


def test_a_query_without_a_proxy_is_refused_by_its_place() -> None:
    with pytest.raises(ProblemError, match=r"\$\.queries\[0\]\.proxy: .* say where"):
        query_tree(problem_of(TWO_WAY), 0)


def test_a_tree_that_doubles_again_and_again_is_refused() -> None:
    count = 20
    document = {
        "hosts": [{"name": "h0"}],
        "streams": [{"name": "s0", "rate_bps": 1, "home": "h0"}]
        + [{"name": f"s{i + 1}", "rate_bps": 1} for i in range(count)],
        "operators": [
            {"name": f"o{i}", "inputs": [f"s{i}", f"s{i}"], "output": f"s{i + 1}"}
            for i in range(count)
        ],
        "queries": [{"name": "q", "wants": f"s{count}", "proxy": "h0"}],
    }
    with pytest.raises(ProblemError, match=f"more than {MOST_NODES:,} nodes"):
        query_tree(problem_of(document), 0)


def test_without_latencies_all_hosts_are_equally_far() -> None:
    ways = ways_of(problem_of(TWO_WAY).hosts)
    assert ways.latency_ms.tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]


def test_a_link_without_capacity_is_no_way() -> None:
    document = {**TWO_WAY, "links": [{"from": "h0", "to": "h1", "bps": 0}]}
    assert ways_of(problem_of(document).hosts).latency_ms[0, 1] == np.inf
