"""What of the past a query looks at."""

from __future__ import annotations

from thalweg.plan import nodes


def looks_at_history(plan: nodes.Node, relation: str) -> bool:
    """Whether what a query says depends on when the relation's rows came and went, not only on what
    is there from its start on: it has a stream inside, or a row that stays once it was there."""
    return any(
        relation in {s.name for s in nodes.base_streams(node)}
        for node in nodes.walk(plan)
        if (isinstance(node, nodes.ToStream) and node is not plan)
        or (isinstance(node, nodes.Aggregate) and not node.keys)
    )
