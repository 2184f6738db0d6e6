"""Placing anew what is placed: what would change, how far it is, and what really runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from starlette.requests import Request

from thalweg.api.network.forwarding import Forwarding
from thalweg.api.network.placed import placed_tree
from thalweg.engine.site import Site
from thalweg.engine.site.status import instant_words
from thalweg.plan.catalog import StreamDef
from thalweg.runtime.data.fragments import digest
from thalweg.runtime.network.directory import node_of
from thalweg.runtime.network.node import Node
from thalweg.runtime.network.placing.difference import Stays, wrongly_placed
from thalweg.runtime.network.placing.replacing import Replacement, Step


def replacement_json(site: Site, found: Replacement, stays: Iterable[Stays] = ()) -> dict[str, Any]:
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
                "since_text": _since_text(site, s),
                "error": s.why,
            }
            for s in found.steps
        ],
        "stays": [{"query": s.query, "at": s.at, "why": s.why} for s in stays],
    }


def _since_text(site: Site, step: Step) -> str | None:
    stream = site.catalog.find(step.change.stream)
    if step.since is None or not isinstance(stream, StreamDef):
        return None
    return instant_words(step.since, stream.resolution_us, stream.timestamp_type.is_temporal)


async def checked(node: Node, forwarding: Forwarding, request: Request) -> list[dict[str, Any]]:
    """Of each query that is placed here: what runs otherwise than it was planned."""
    me = node_of(node.directory, node.name)
    found = []
    for task in node.tasks.all():
        if task.fragment is None:
            continue  # of a version that did not write it down
        tree = await placed_tree(node, forwarding, request, me, task.query)
        wrong = ["it does not run"] if tree is None else list(wrongly_placed(tree))
        found.append({"query": task.query, "strategy": task.strategy, "problems": wrong})
    return found
