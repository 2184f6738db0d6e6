"""Placing anew what is placed: what would change, how far it is, and what really runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from starlette.requests import Request

from thalweg.api.network.forwarding import Forwarding
from thalweg.api.network.placed import placed_tree
from thalweg.runtime.data.fragments import digest
from thalweg.runtime.network.difference import Stays, wrongly_placed
from thalweg.runtime.network.directory import node_of
from thalweg.runtime.network.node import Node
from thalweg.runtime.network.replacing import Replacement


def replacement_json(found: Replacement, stays: Iterable[Stays] = ()) -> dict[str, Any]:
    return {
        "strategy": found.strategy,
        "is_over": found.is_over,
        "changes": [
            {
                "query": s.change.query,
                "fragment": digest(s.change.fragment),
                "from": s.change.was,
                "to": s.change.to,
                "state": s.state,
                "since": s.since,
                "error": s.why,
            }
            for s in found.steps
        ],
        "stays": [{"query": s.query, "at": s.at, "why": s.why} for s in stays],
    }


async def checked(node: Node, forwarding: Forwarding, request: Request) -> list[dict[str, Any]]:
    """Of each query that is placed here: what runs otherwise than it was planned."""
    me = node_of(node.directory, node.name)
    found = []
    for task in node.tasks.all():
        if task.fragment is None:
            continue  # of a version that did not write it down
        tree = await placed_tree(node, forwarding, request, me, task.query)
        wrong = ["it does not run"] if tree is None else list(wrongly_placed(tree, task.fragment))
        found.append({"query": task.query, "strategy": task.strategy, "problems": wrong})
    return found
