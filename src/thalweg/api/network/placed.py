"""EXPLAIN of where a query runs: its fragments, their nodes, and the streams between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from starlette.requests import Request

from thalweg.adapt.moves.spreading import buckets_of
from thalweg.api.network.forwarding import Forwarding
from thalweg.api.network.joined import add_parts, join_lines, join_title, joined
from thalweg.engine.site import Site
from thalweg.engine.site.publications import is_engine_fed, is_mirror
from thalweg.engine.site.status import instant_text
from thalweg.plan.as_cql import as_cql
from thalweg.plan.catalog import StreamDef
from thalweg.plan.nodes import Aggregate, Scan, ToStream, Window, transform, walk
from thalweg.plan.nodes import Node as Plan
from thalweg.plan.shapes import shape_of
from thalweg.plan.travelling import decode_plan
from thalweg.plan.windows import RowsWindow, SessionWindow, TimeWindow
from thalweg.runtime.data.fragments import digest_of, is_fragment
from thalweg.runtime.data.mirror import UNTIL
from thalweg.runtime.network.directory import NodeInfo, NotKnown, node_of
from thalweg.runtime.network.fragments.handing import epoch_of
from thalweg.runtime.network.mirrors.lags import lag_text
from thalweg.runtime.network.mirrors.mirrored import AGAIN
from thalweg.runtime.network.node import Node
from thalweg.runtime.network.placing.difference import wanted_inputs
from thalweg.runtime.swap.definitions import SWAP, is_joined

_LONGEST = 160  # characters of what a fragment computes
_JOINED_KEPT = "lossy: what nodes have joined is on their own disks, and waits there for them"


# --- at one node


def placed(node: Node, name: str) -> dict[str, Any]:
    """Of a query that stands at this node, or of a fragment that it computes for another. Raises
    Unknown, WrongUse."""
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
        "took": _took(site, query.name),
        "kept": _JOINED_KEPT
        if task is not None and task.strategy == SWAP
        else kept_as(query.plan if task is None else decode_plan(task.plan)),
        "computes": computes(query.plan),
        "moved": moved(node, name),
        "balanced": _balanced(node, query.name),
        "buckets": buckets_of(query.plan) if is_fragment(query.name) else None,
        "strategy": None if task is None else task.strategy,
        "why": [] if task is None else list(task.words),
        "wanted": _wanted(node, query.name),
        "inputs": [_input(node, s) for s in shape_of(query).streams if not _has_ended(node, s)],
    }


def _has_ended(node: Node, stream: StreamDef) -> bool:
    here = node.site.stream(stream.name)
    return is_mirror(here) and not is_joined(here) and node.mirrors.has_ended(here)


def _wanted(node: Node, query: str) -> list[dict[str, Any]] | None:
    given = node.tasks.given(query)
    return None if given is None else wanted_inputs(given)


def moved(node: Node, name: str) -> dict[str, Any] | None:
    """Of a fragment that has come here with its state: since when, and how often it has moved."""
    query = node.site.query(node.data.publications.sharers.find(name).of)
    if not is_fragment(query.name) or not epoch_of(query.name):
        return None
    readers = node.data.publications.sharers.of(query.name)
    since = min(node.data.publications.sharers.find(r).since for r in readers)
    first = shape_of(query).streams[0]
    return {"since": _instant(first, since), "times": epoch_of(query.name)}


def _balanced(node: Node, query: str) -> dict[str, Any] | None:
    """Of a fragment, where partners balance."""
    if node.partnering is None or not is_fragment(query):
        return None
    return node.partnering.told_of(query)


def _took(site: Site, query: str) -> dict[str, Any] | None:
    took = site.delays.of(site.engine.roster.group_of.get(query, query))
    if took is None or took.pr is None:
        return None
    return {"delay_ms": 1000 * took.delay_s, "pr": took.pr, "cpr": took.cpr}


def computes(plan: Plan) -> str:
    """In a line: what a plan is."""
    text = " ".join(as_cql(transform(plan, _called_as_known)).split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _called_as_known(node: Plan) -> Plan:
    """A fragment that has moved, or that was taken over, has streams of its own."""
    if not isinstance(node, Scan) or not node.stream.name.startswith(AGAIN):
        return node
    known = node.stream.name.removeprefix(AGAIN).rpartition(".")[0]
    return Scan(replace(node.stream, name=known))


def kept_as(plan: Plan) -> str:
    """What happens to a query or fragment if its node is gone for good."""
    top = plan.input if isinstance(plan, ToStream) else plan
    for node in walk(top):
        match node:
            case Window(_, (RowsWindow() | SessionWindow())):
                return "lossy: a Rows or Session window can't be rebuilt from a bounded past"
            case Window(_, TimeWindow(None)):
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
    if is_joined(here):
        found |= {"from": node.name, "publication": None, "fragment": None}
        found["join"] = joined(node, here)
    elif is_engine_fed(here):
        told = node.computing.told(here)
        found |= {"from": node.name, "publication": None, "fragment": None, **told}
    elif is_mirror(here):
        route = node.mirrors.routes(here)[-1]
        wanted = "all rows" if route.where is None else f"rows where {' or '.join(route.where)}"
        if route.columns is not None and len(route.columns) < len(here.fields):
            wanted += f", columns {', '.join(route.columns)}"
        found |= {"from": node.mirrors.home(here), "publication": route.publication, "rows": wanted}
        found["fragment"] = digest_of(route.publication)
        found["of"] = dict(here.options).get("stream", stream.name)
        found["until"] = dict(here.options).get(UNTIL)
        copy = None if node.copies is None else node.copies.find(stream.name)
        if copy is not None:
            found["copied"] = _instant(stream, copy.state.manifest.frontier)
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
        if given.get("join") is not None:
            await add_parts(node, forwarding, request, given["join"])
            continue
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
            given["way"] = await _way(node, forwarding, request, there, given["of"])
        given["lag"] = lag_text(given["watermark"], mark)
    return dict(found)


async def _way(
    node: Node, forwarding: Forwarding, request: Request, at: NodeInfo, stream: str
) -> list[str]:
    """By which nodes a stream has come to one, up to its home."""
    nodes = {n.name: n for n in node.directory.nodes()}
    way = [at.name]
    while len(way) <= len(nodes):
        ((_, links),) = await forwarding.get_all(request, [nodes[way[-1]]], "/network/links")
        above = [x["from"] for x in links or [] if x["stream"] == stream and not x["fragment"]]
        # Where a stream is at home, a fragment that came with its state has it from there, too.
        if not above or above[0] not in nodes or above[0] in way:
            break
        way.append(above[0])
    return way[1:]


# --- as text


def placed_text(found: dict[str, Any]) -> str:
    return "\n".join(_lines(found))


def _lines(found: dict[str, Any]) -> Iterator[str]:
    where = f"node {found['node']} (site {found['site']})"
    yield f"{found['query']} at {where}"
    yield from _told(found)
    yield from _spread_out(found)
    if found["strategy"] is not None:
        yield f"│  placed by {found['strategy']}:"
        yield from (f"│    {line}" for line in found["why"])
    yield from _inputs(found)


def _told(found: dict[str, Any]) -> Iterator[str]:
    yield f"│  {_final(found['frontier'])}"
    if (took := found.get("took")) is not None:
        ppr = took["pr"] - took["cpr"]
        ratio = f"PR {took['pr']:.3g} = {ppr:.3g} at nodes + {took['cpr']:.3g} between them"
        yield f"│  results are {took['delay_ms']:,.0f} ms behind their tuples: {ratio}"
    if found["buckets"] is not None:
        low, high = found["buckets"]
        yield f"│  buckets {low} to {high} of the key"
    if found["moved"] is not None:
        times = "once" if found["moved"]["times"] == 1 else f"{found['moved']['times']} times"
        yield f"│  here since instant {found['moved']['since'] or 'the first'}, moved {times}"
    if found.get("balanced") is not None:
        yield from _heuristics(found["node"], found["balanced"])
    yield f"│  {found['kept']}"


def _heuristics(node: str, balanced: dict[str, Any]) -> Iterator[str]:
    """COSMOS 6.1.2: equal loads, and little traffic; how few nodes a query has is told of it."""
    partners = ", ".join(sorted(balanced["partners"])) or "none yet"
    verb = "advised on" if balanced["advises"] else "balanced"
    yield f"│  {verb} by partners, for the least PR_max:"
    yield f"│    load {balanced['load']:.2f} here, {balanced['mean']:.2f} in the mean ({partners})"
    is_native = balanced["native_to"] == node
    whose = "native here" if is_native else f"foreign here, native to {balanced['native_to']}"
    near = ", ".join(balanced["neighbours_at"]) or "nowhere"
    yield f"│    {whose}; its neighbours run at {near}"


def _parts(found: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield found
    for given in found["inputs"]:
        if given.get("part") is not None:
            yield from _parts(given["part"])


def _spread_out(found: dict[str, Any]) -> Iterator[str]:
    """COSMOS 6.1.2: a query runs at no more nodes than it has fragments, whoever moves them."""
    parts = list(_parts(found))
    if any(p.get("balanced") is not None for p in parts):
        nodes = {p["node"] for p in parts}
        yield f"│  runs at {len(nodes)} nodes, at {len(parts)} at most: one for each fragment"


def _inputs(found: dict[str, Any]) -> Iterator[str]:
    for place, given in enumerate(found["inputs"]):
        branch, rest = ("└─", "   ") if place == len(found["inputs"]) - 1 else ("├─", "│  ")
        at = _final(given["watermark"])
        lag = f", {given['lag']}" if given.get("lag") else ""
        if given.get("join") is not None:
            yield f"{branch} {join_title(given['join'])}: {at}"
            yield from (f"{rest}   {line}" for line in join_lines(given["join"]))
        elif given.get("engine") is not None:
            read = ", ".join(given["reads"])
            yield f"{branch} computed by {given['engine']} here, over {read}: {at}{lag}"
        elif given["publication"] is None:
            yield f"{branch} {given['stream']}: at home here, {at}"
        else:
            rows = f"{given['arrived']:,} {'row' if given['arrived'] == 1 else 'rows'} so far"
            told = f"{at}{lag}, {rows}, {given['rows_per_s']:.3g}/s"
            what = given["of"]
            if given["fragment"] is not None:
                what = f"fragment {given['fragment']}"
            way = "".join(f", which has it from {n}" for n in given.get("way", ()))
            yield f"{branch} {what} from {given['from']}{way}: {told}"
            yield f"{rest}   {given['rows']}, as {given['publication']}"
        if given.get("lost"):
            yield f"{rest}   {given['lost']}"
            continue
        if given.get("copied"):
            yield f"{rest}   checkpointed: copied here, as of {given['copied']}"
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


def _final(upto: str | None) -> str:
    return f"final up to {upto}" if upto else "nothing is final yet"


def _instant(stream: StreamDef, instant: int) -> str | None:
    return instant_text(instant, stream.resolution_us, stream.timestamp_type.is_temporal)
