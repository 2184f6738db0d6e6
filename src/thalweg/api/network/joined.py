"""EXPLAIN of a join across nodes: its distributed join graph, with shares of rows by route."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from starlette.requests import Request

from thalweg.api.network.forwarding import Forwarding
from thalweg.engine.site.status import instant_text
from thalweg.plan.catalog import StreamDef
from thalweg.runtime.network.node import Node
from thalweg.runtime.swap.definitions import columns_of, query_of
from thalweg.runtime.swap.shares import PERIOD_S
from thalweg.runtime.swap.telling import graph_json

_LEAST_ROWS = 10  # in a period, for a share to mean something


def joined(node: Node, mirror: StreamDef) -> dict[str, Any]:
    """As the node where the query stands knows it."""
    query = query_of(mirror)
    names = {} if node.joins is None else node.joins.names()
    is_temporal = mirror.timestamp_type.is_temporal
    return {
        "id": query.id,
        "since": instant_text(query.first, mirror.resolution_us, is_temporal),
        "graph": graph_json(query, names, columns_of(mirror)),
    }


async def add_parts(
    node: Node, forwarding: Forwarding, request: Request, join: dict[str, Any]
) -> None:
    """Each node's part, as it tells it; none of those that do not answer."""
    wanted = {name for each in join["graph"] for name in each["nodes"]}
    nodes = [n for n in node.directory.nodes() if n.name in wanted]
    path = f"/network/joins?id={quote(join['id'], safe='')}"
    answers = await forwarding.get_all(request, nodes, path)
    join["parts"] = {n.name: told for n, told in answers}


def join_title(join: dict[str, Any]) -> str:
    nodes = sorted({name for each in join["graph"] for name in each["nodes"]})
    since = f" since instant {join['since']}" if join["since"] is not None else ""
    return f"joined across {', '.join(nodes)}{since}"


def join_lines(join: dict[str, Any]) -> Iterator[str]:
    """Node by node: what it joins and keeps, then where its rows go, in all and lately."""
    names = [_name(join, number) for number in range(len(join["graph"]))]
    for each in sorted(join["graph"], key=lambda e: (e["nodes"], e["number"])):
        part = _part(join, each)
        yield f"{names[each['number']]} ({each['kind']}): {_does(each)}"
        if part is None:
            yield "│  does not answer, or has no part in it"
            continue
        yield f"│  keeps {_rows(part['stored'])}" + (
            f", {_rows(part['waiting'])} wait for room elsewhere" if part["waiting"] else ""
        )
        yield from (f"│  waits: {why}" for why in _told(join, each)["troubles"])
        ways = {way["to"]: way for way in part["ways"]}
        total = sum(way["rows"] for way in ways.values())
        lines = []
        for link in sorted(each["links"], key=lambda x: names[x["to"]]):
            way = ways[link["to"]]
            line = f"{link['kind']} to {names[link['to']]}: {_rows(way['rows'])}"
            if link["kind"] == "RMO" and total:
                line += f", {100 * way['rows'] / total:.0f} %{_lately(way, ways.values())}"
            lines.append(line)
        if each["gives_results"]:
            lines.append(f"gives results: {_rows(part['results'])}")
        for place, line in enumerate(lines):
            yield f"{'└─' if place == len(lines) - 1 else '├─'} {line}"


def _lately(way: dict[str, Any], ways: Any) -> str:
    """Its share in each of the last periods, the oldest first."""
    shares = []
    for period in zip(way["lately"], *(other["lately"] for other in ways), strict=False):
        mine, *all_ways = period
        total = sum(all_ways)
        shares.append(f"{100 * mine / total:.0f}" if total >= _LEAST_ROWS else "-")
    return f" (lately {' '.join(shares)} %, each of {PERIOD_S:.0f} s)" if shares else ""


def _name(join: dict[str, Any], number: int) -> str:
    """A node of the plan, by who runs it; where one runs several, by its number, too."""
    own = ", ".join(join["graph"][number]["nodes"])
    same = [e["number"] for e in join["graph"] if ", ".join(e["nodes"]) == own]
    return own if len(same) == 1 else f"{own}.{same.index(number) + 1}"


def _does(each: dict[str, Any]) -> str:
    joins, reads = "; ".join(each["joins"]), ", ".join(each["reads"])
    if not joins:
        return f"reads {reads}"
    return f"{joins} (at home here: {reads})" if reads else joins


def _told(join: dict[str, Any], each: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = join["parts"].get(each["nodes"][0]) or {"nodes": (), "troubles": ()}
    return found


def _part(join: dict[str, Any], each: dict[str, Any]) -> dict[str, Any] | None:
    parts = _told(join, each)["nodes"]
    return next((part for part in parts if part["number"] == each["number"]), None)


def _rows(count: int) -> str:
    return f"{count:,} {'row' if count == 1 else 'rows'}"
