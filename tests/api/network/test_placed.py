"""What `explain --placed` says of a fragment."""

from __future__ import annotations

from dataclasses import replace

from thalweg.api.network.placed import computes
from thalweg.cql import compile_script
from thalweg.plan.nodes import Node, Scan, transform


def test_a_fragment_that_has_moved_is_shown_over_the_streams_that_people_know() -> None:
    text = (
        "CREATE STREAM Bids (item BIGINT, price DOUBLE) TIMESTAMP BY ts BIGINT; "
        "CREATE QUERY q AS SELECT item, MAX(price) AS p FROM Bids [Range 9] WHERE price > 3 "
        "GROUP BY item"
    )
    (query,) = compile_script(text).queries

    def moved(node: Node) -> Node:
        if not isinstance(node, Scan):
            return node
        return Scan(replace(node.stream, name="fragment/again/Bids.1"))

    assert computes(transform(query.plan, moved)) == computes(query.plan)
    assert "FROM Bids [Range 9]" in computes(query.plan)
