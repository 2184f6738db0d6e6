"""The network at a glance: its nodes, what each has, and how far they are behind each other."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from thalweg.api.network.forwarding import Forwarding
from thalweg.runtime.network.node import Node


async def overview(node: Node, forwarding: Forwarding, request: Request) -> dict[str, Any]:
    directory = node.directory
    found = []
    links_of = await forwarding.get_all(request, directory.nodes(), "/network/links")
    for info, links in links_of:
        defined = [d for d in directory.defined().values() if d.node == info.name]
        found.append(
            {
                "name": info.name,
                "site": info.site,
                "http": info.http,
                "data": info.data,
                "address": info.address,
                "answers": links is not None,
                "is_up": directory.is_up(info.name),
                "defines": [{"name": d.name, "kind": d.kind} for d in defined],
                "links": links or [],
            }
        )
    return {"asked": node.name, "nodes": found}
