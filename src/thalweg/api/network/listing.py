"""What all nodes have and tell, as one list."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.requests import Request

from thalweg.api.network.forwarding import Forwarding
from thalweg.runtime.network.directory import FED, QUERY, Defined, NodeInfo
from thalweg.runtime.network.measuring import NodeMeasure
from thalweg.runtime.network.node import Node

# Kinds that are listed though their node is away.
LISTS = {"/queries": (QUERY,), "/streams": FED, "/sinks": (), "/views": ()}
# Each node tells its own.
OF_ALL = ("/network/trees", "/network/fidelity", "/network/partners", "/network/coordinators")


class Listing:
    def __init__(self, node: Node, forwarding: Forwarding) -> None:
        self._node, self._forwarding = node, forwarding

    async def listed(self, request: Request, path: str) -> list[dict[str, Any]]:
        directory = self._node.directory
        found: list[dict[str, Any]] = []
        silent: list[NodeInfo] = []
        known = directory.defined().values()
        renamed = {(d.node, d.own_name.lower()): d.name for d in known if d.is_renamed}
        for node, rows in await self._forwarding.get_all(request, directory.nodes(), path):
            if rows is None:
                silent.append(node)
            else:
                for row in rows:
                    name = renamed.get((node.name, str(row["name"]).lower()), row["name"])
                    found.append({**row, "name": name, "node": node.name})
        away_names = {n.name for n in silent}
        found += [
            _unseen(entry)
            for entry in directory.defined().values()
            if entry.kind in LISTS[path] and entry.node in away_names
        ]
        return sorted(found, key=lambda row: str(row["name"]).lower())

    async def loads(self, request: Request) -> list[dict[str, Any]]:
        """Of all nodes that answer."""
        nodes = self._node.directory.nodes()
        answers = await self._forwarding.get_all(request, nodes, "/network/load")
        return [told for _, told in answers if told is not None]

    async def of_all(self, request: Request, path: str) -> list[dict[str, Any]]:
        """What all nodes tell: homes of their streams' trees, readers of their fidelity, partners
        of loads."""
        nodes = self._node.directory.nodes()
        query = f"?{request.url.query}" if request.url.query else ""
        found = await self._forwarding.get_all(request, nodes, f"{path}{query}")
        return [row for _, told in found for row in told or []]

    async def measured(self, request: Request) -> list[NodeMeasure]:
        """The network as it is now; who does not answer is left out, and who runs nothing."""
        nodes = [n for n in self._node.directory.nodes() if not n.only_passes_on]
        found = await self._forwarding.get_all(request, nodes, "/network/measured")
        return [msgspec.convert(told, NodeMeasure) for _, told in found if told is not None]


def _unseen(entry: Defined) -> dict[str, Any]:
    """Of a node that does not answer, what is known all the same."""
    error = f"node {entry.node} does not answer"
    common = {"name": entry.name, "state": "unknown", "error": error, "node": entry.node}
    if entry.kind == QUERY:
        unknown = ("group", "rows", "frontier", "complete_from", "delay_ms", "pr", "cpr")
        nothing = dict.fromkeys(unknown)
        return {
            **nothing,
            **common,
            "kind": "",
            "cost_s": 0.0,
            "streams": [],
            "sinks": [],
            "columns": [],
            "text": entry.text,
        }
    counts = dict.fromkeys(("arrived", "backlog", "late", "rejected"), 0)
    return {
        **counts,
        **common,
        "kind": entry.kind,
        "columns": [],
        "watermark": None,
        "source": None,
        "timestamp": "",
    }
