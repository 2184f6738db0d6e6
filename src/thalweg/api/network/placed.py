"""EXPLAIN of where a query runs: the streams that come to it, from where, and how far they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from thalweg.engine.site.publications import is_mirror
from thalweg.engine.site.status import instant_text
from thalweg.plan.catalog import QueryDef, StreamDef
from thalweg.plan.nodes import Scan, Window, walk
from thalweg.plan.shapes import shape_of
from thalweg.plan.windows import RowsWindow, SessionWindow
from thalweg.runtime.network.mirrors import home_of
from thalweg.runtime.network.node import Node


def placed(node: Node, name: str) -> dict[str, Any]:
    """Of a query that runs at this node."""
    site = node.site
    query = site.query(name)
    reader = site.reader(query)
    first = shape_of(query).streams[0]
    return {
        "query": query.name,
        "node": node.name,
        "site": node.directory.me.site,
        "frontier": _instant(first, reader.frontier().instant),
        "kept": kept_as(query),
        "inputs": [_input(node, s) for s in shape_of(query).streams],
    }


def kept_as(query: QueryDef) -> str:
    """What happens to the query if its node is gone for good."""
    for scan in walk(query.plan):
        match scan:
            case Window(_, (RowsWindow() | SessionWindow())):
                return "lossy: a Rows or Session window can't be rebuilt from a bounded past"
            case Window(_, spec) if spec.length is None:
                return "lossy: an unbounded window can't be rebuilt from a bounded past"
            case Scan(stream) if stream.is_relation:
                return "lossy: a relation is kept at its home, but not its past"
    return "replayable: its windows are finite, so that its inputs can be read again"


def _input(node: Node, stream: StreamDef) -> dict[str, Any]:
    site = node.site
    here = site.stream(stream.name)
    feed = site.feeds.find(stream.name)
    found: dict[str, Any] = {
        "stream": stream.name,
        "watermark": _instant(stream, site.engine.watermark(stream.name)),
        "error": feed.error if feed is not None else None,
    }
    if is_mirror(here):
        route = node.mirrors.routes(here)[-1]
        wanted = "all rows" if route.where is None else f"rows where {' or '.join(route.where)}"
        found |= {"from": home_of(here), "publication": route.publication, "rows": wanted}
        found["arrived"] = site.engine.store.inputs.arrived().get(stream.name, 0)
    else:
        found |= {"from": node.name, "publication": None}
    return found


def placed_text(found: dict[str, Any]) -> str:
    return "\n".join(_lines(found))


def _lines(found: dict[str, Any]) -> Iterator[str]:
    where = f"node {found['node']} (site {found['site']})"
    yield f"{found['query']} at {where}"
    yield f"│  final up to {found['frontier'] or 'nothing yet'}"
    yield f"│  {found['kept']}"
    for place, given in enumerate(found["inputs"]):
        branch, rest = ("└─", "   ") if place == len(found["inputs"]) - 1 else ("├─", "│  ")
        at = f"final up to {given['watermark'] or 'nothing yet'}"
        if given["publication"] is None:
            yield f"{branch} {given['stream']}: at home here, {at}"
        else:
            rows = f"{given['arrived']:,} {'row' if given['arrived'] == 1 else 'rows'} so far"
            yield f"{branch} {given['stream']} from {given['from']}: {at}, {rows}"
            yield f"{rest}   {given['rows']}, as {given['publication']}"
        if given["error"]:
            yield f"{rest}   waits: {given['error']}"


def _instant(stream: StreamDef, instant: int) -> str | None:
    return instant_text(instant, stream.resolution_us, stream.timestamp_type.is_temporal)
