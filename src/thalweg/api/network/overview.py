"""The network at a glance: its nodes, what each has, and how far they are behind each other."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from thalweg.api.network.forwarding import Forwarding
from thalweg.runtime.network.node import Node
from thalweg.runtime.peers.node import PeerNode

FRAGMENT = "fragment"


async def overview(node: Node, forwarding: Forwarding, request: Request) -> dict[str, Any]:
    directory = node.directory
    found = []
    nodes = directory.nodes()
    links_of = await forwarding.get_all(request, nodes, "/network/links")
    told = await forwarding.get_all(request, nodes, "/network/fragments")
    fragments = {info.name: given or [] for info, given in told}
    roles: dict[str, Any] = dict.fromkeys(fragments)
    if isinstance(node, PeerNode):
        asked = await forwarding.get_all(request, nodes, "/network/role")
        roles = {info.name: given for info, given in asked}
    deciding: dict[str, Any] = {}
    if node.deciding is not None:
        asked = await forwarding.get_all(request, nodes, "/network/coordinators")
        deciding = {info.name: given[0] for info, given in asked if given}
    marks = {f["publication"]: f["frontier"] for given in fragments.values() for f in given}
    for info, links in links_of:
        defined = [d for d in directory.defined().values() if d.node == info.name]
        for link in links or []:
            link["at_home"] = marks.get(link["publication"])
        found.append(
            {
                "name": info.name,
                "site": info.site,
                "engine": info.engine,
                "http": info.http,
                "data": info.data,
                "address": info.address,
                "answers": links is not None,
                "is_up": directory.is_up(info.name),
                "defines": [{"name": d.name, "kind": d.kind} for d in defined]
                + [{"name": _name(f), "kind": FRAGMENT, **f} for f in fragments[info.name]],
                "links": links or [],
                "role": roles[info.name],
                "deciding": deciding.get(info.name),
            }
        )
    return {"asked": node.name, "nodes": found}


def _name(fragment: dict[str, Any]) -> str:
    """As people see it: what is computed, and for whom."""
    number = fragment["publication"].partition("#")[2].partition(">")[0]
    return f"{number} for {fragment['reader']}"
