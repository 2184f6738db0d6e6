"""EXPLAIN of where a query runs: its fragments, their nodes, and the streams between them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from starlette.requests import Request

from thalweg.api.network.forwarding import Forwarding
from thalweg.engine.site.publications import is_mirror
from thalweg.engine.site.status import instant_text
from thalweg.placement.from_cql.blocks import plan_name
from thalweg.plan.catalog import StreamDef
from thalweg.plan.nodes import Aggregate, Project, ToStream, Window, walk
from thalweg.plan.nodes import Node as Plan
from thalweg.plan.shapes import shape_of
from thalweg.plan.travelling import decode_plan
from thalweg.plan.windows import RowsWindow, SessionWindow
from thalweg.runtime.data.fragments import digest_of, is_fragment
from thalweg.runtime.network.directory import NodeInfo, NotKnown, node_of
from thalweg.runtime.network.lags import lag_text
from thalweg.runtime.network.node import Node

_LONGEST = 110  # characters of what a fragment computes


# --- at one node


def placed(node: Node, name: str) -> dict[str, Any]:
    """Of a query that stands at this node, or of a fragment that it computes for another."""
    site = node.site
    query = site.query(node.data.publications.sharers.find(name).of)
    reader = site.reader(query)
    first = shape_of(query).streams[0]
    task = None if is_fragment(query.name) else node.tasks.of(query.name)
    return {
        "query": query.name,
        "node": node.name,
        "site": node.directory.me.site,
        "frontier": _instant(first, reader.frontier().instant),
        "kept": kept_as(query.plan if task is None else decode_plan(task.plan)),
        "computes": computes(query.plan),
        "strategy": None if task is None else task.strategy,
        "why": [] if task is None else list(task.words),
        "inputs": [_input(node, s) for s in shape_of(query).streams],
    }


def computes(plan: Plan) -> str:
    """In a line: what a plan is, but for the names that a fragment gives its columns."""
    text = " ".join(plan_name(_unnamed(plan)).split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _unnamed(plan: Plan) -> Plan:
    if isinstance(plan, ToStream):
        return ToStream(plan.kind, _unnamed(plan.input))
    is_naming = isinstance(plan, Project) and all(n.startswith("c") for n in plan.names)
    return plan.input if is_naming else plan  # type: ignore[union-attr]


def kept_as(plan: Plan) -> str:
    """What happens to a query or fragment if its node is gone for good."""
    top = plan.input if isinstance(plan, ToStream) else plan
    for node in walk(top):
        match node:
            case Window(_, (RowsWindow() | SessionWindow())):
                return "lossy: a Rows or Session window can't be rebuilt from a bounded past"
            case Window(_, spec) if spec.length is None:
                return "lossy: an unbounded window can't be rebuilt from a bounded past"
            case Aggregate(_, ()):
                return "lossy: without GROUP BY, a row stays once it was there"
    return "replayable: its windows are finite, so that its inputs can be read again"


def _input(node: Node, stream: StreamDef) -> dict[str, Any]:
    site = node.site
    here = site.stream(stream.name)
    feed = site.feeds.find(stream.name)
    found: dict[str, Any] = {
        "stream": stream.name,
        "watermark": _instant(stream, site.engine.watermark(stream.name)),
        "error": feed.error if feed is not None else None,
        "lost": site.lost.get(stream.name),
        "rows_per_s": node.meter.rows_per_s().get(stream.name, 0.0),
    }
    if is_mirror(here):
        route = node.mirrors.routes(here)[-1]
        wanted = "all rows" if route.where is None else f"rows where {' or '.join(route.where)}"
        found |= {"from": node.mirrors.home(here), "publication": route.publication, "rows": wanted}
        found["fragment"] = digest_of(route.publication)
        found["of"] = dict(here.options).get("stream", stream.name)
        found["arrived"] = site.engine.store.inputs.arrived().get(stream.name, 0)
    else:
        found |= {"from": node.name, "publication": None, "fragment": None}
    return found


# --- all over the network


async def placed_tree(
    node: Node, forwarding: Forwarding, request: Request, at: NodeInfo, name: str
) -> dict[str, Any] | None:
    """With what other nodes compute for it, each told by its node; None if the first does not
    answer."""
    ((_, found),) = await forwarding.get_all(request, [at], f"/network/placed?name={quote(name)}")
    if found is None:
        return None
    for given in found["inputs"]:
        if given["publication"] is None:
            continue
        try:
            there = node_of(node.directory, given["from"])
        except NotKnown:
            continue
        if given["fragment"] is not None:
            part = await placed_tree(node, forwarding, request, there, given["publication"])
            given["part"] = part
            mark = None if part is None else part["frontier"]
        else:
            path = f"/streams/{quote(given['of'])}"
            ((_, told),) = await forwarding.get_all(request, [there], path)
            mark = None if told is None else told["watermark"]
        given["lag"] = lag_text(given["watermark"], mark)
    return dict(found)


# --- as text


def placed_text(found: dict[str, Any]) -> str:
    return "\n".join(_lines(found))


def _lines(found: dict[str, Any]) -> Iterator[str]:
    where = f"node {found['node']} (site {found['site']})"
    yield f"{found['query']} at {where}"
    yield from _told(found)
    if found["strategy"] is not None:
        yield f"│  placed by {found['strategy']}:"
        yield from (f"│    {line}" for line in found["why"])
    yield from _inputs(found)


def _told(found: dict[str, Any]) -> Iterator[str]:
    yield f"│  final up to {found['frontier'] or 'nothing yet'}"
    yield f"│  {found['kept']}"


def _inputs(found: dict[str, Any]) -> Iterator[str]:
    for place, given in enumerate(found["inputs"]):
        branch, rest = ("└─", "   ") if place == len(found["inputs"]) - 1 else ("├─", "│  ")
        at = f"final up to {given['watermark'] or 'nothing yet'}"
        lag = f", {given['lag']}" if given.get("lag") else ""
        if given["publication"] is None:
            yield f"{branch} {given['stream']}: at home here, {at}"
        else:
            rows = f"{given['arrived']:,} {'row' if given['arrived'] == 1 else 'rows'} so far"
            told = f"{at}{lag}, {rows}, {given['rows_per_s']:.3g}/s"
            what = given["of"]
            if given["fragment"] is not None:
                what = f"fragment {given['fragment']}"
            yield f"{branch} {what} from {given['from']}: {told}"
            yield f"{rest}   {given['rows']}, as {given['publication']}"
        if given.get("lost"):
            yield f"{rest}   {given['lost']}"
            continue
        if given["error"]:
            yield f"{rest}   waits: {given['error']}"
        if given.get("fragment") is not None:
            yield from (f"{rest}   {line}" for line in _part(given))


def _part(given: dict[str, Any]) -> Iterator[str]:
    part = given.get("part")
    if part is None:
        yield f"node {given['from']} does not answer"
        return
    yield f"computes {part['computes']}"
    yield from _told(part)
    yield from _inputs(part)


def _instant(stream: StreamDef, instant: int) -> str | None:
    return instant_text(instant, stream.resolution_us, stream.timestamp_type.is_temporal)
