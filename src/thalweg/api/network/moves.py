"""Moving fragments: which ones a name means, where they are, and how far moves have come."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.requests import Request

from thalweg.adapt.moves.spreading import Buckets
from thalweg.api.bodies import decoded
from thalweg.api.network.forwarding import Forwarding
from thalweg.api.network.placed import placed_tree
from thalweg.cql import syntax
from thalweg.cql.parser import parse_each
from thalweg.engine.site import SiteError, Unknown, WrongUse
from thalweg.runtime.data.fragments import digest_of
from thalweg.runtime.network.directory import QUERY, Defined, node_of
from thalweg.runtime.network.moves.journal import MoveRecord
from thalweg.runtime.network.node import Node
from thalweg.runtime.network.placing.spreading import parse_buckets
from thalweg.runtime.peers.node import PeerNode


class Wanted(msgspec.Struct):
    what: str  # a fragment, by its digest or its publication; or a query: all its fragments
    to: str
    by: str = "precopy"
    why: str = ""
    buckets: str | None = None  # of a query that is spread: the parts that are within


def move_json(record: MoveRecord) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.to_builtins(record)
    more = {"since_text": record.since_text, "stood_still_s": record.stood_still_s}
    return {**told, "is_over": record.is_over, **more}


async def listed_moves(
    node: Node, forwarding: Forwarding, request: Request
) -> list[dict[str, Any]]:
    """Of all nodes that answer, in order of time."""
    found: list[dict[str, Any]] = []
    answers = await forwarding.get_all(request, node.directory.nodes(), "/network/moves")
    for _, rows in answers:
        found += rows or []
    return sorted(found, key=lambda row: float(row["begun"]))


async def begin_moves(node: Node, forwarding: Forwarding, request: Request) -> list[dict[str, Any]]:
    """Each at the node that has the fragment. Raises BadRequest, Unknown, WrongUse, SiteError."""
    wanted = await decoded(request, Wanted)
    places = await _places(node, forwarding, request, wanted.what, wanted.buckets)
    there = [(at, publication) for at, publication in places if at != wanted.to]
    if not there:
        raise WrongUse(f"{wanted.what} is at {wanted.to} already")
    return [
        await _begin(node, forwarding, request, at, msgspec.structs.replace(wanted, what=name))
        for at, name in there
    ]


async def _begin(
    node: Node, forwarding: Forwarding, request: Request, at: str, wanted: Wanted
) -> dict[str, Any]:
    """Of a publication, at the node that has it. Raises WrongUse, SiteError."""
    body = {"publication": wanted.what, "to": wanted.to, "by": wanted.by, "why": wanted.why}
    target = node_of(node.directory, at)
    answer = await forwarding.post(request, target, "/network/moves", body)
    if not answer.is_success:
        told = answer.json().get("detail", answer.text)
        raise WrongUse(str(told)) if answer.status_code < 500 else SiteError(str(told))
    begun: dict[str, Any] = answer.json()
    return begun


def spread_change(text: str) -> syntax.SpreadQuery | None:
    """ALTER QUERY … SPREAD OVER, which stands alone."""
    if "SPREAD" not in text.upper():  # nobody parses thousands of texts for nothing
        return None
    statements, _ = parse_each(text)
    alone = statements[0] if len(statements) == 1 else None
    return alone if isinstance(alone, syntax.SpreadQuery) else None


async def spread_anew(
    node: Node, forwarding: Forwarding, request: Request, asked: syntax.SpreadQuery
) -> list[str]:
    """The parts of a query that is spread go to these nodes, each with its state, while it runs.
    What was begun, in words. Raises Unknown, WrongUse, SiteError."""
    query, over = asked.name.text, [n.text for n in asked.nodes]
    known = [n.name for n in node.directory.nodes() if not n.only_passes_on]
    for name in over:
        if name not in known:
            raise Unknown("node", name, known)
    parts = _parts(query, await _inputs(node, forwarding, request, query))
    if len(over) > len(parts):
        few = f"{query} has {len(parts)} parts, too few for {len(over)} nodes"
        raise WrongUse(f"{few}: submit it again with --parts")
    told: list[str] = []
    for place, buckets in enumerate(sorted(parts)):
        at, to = parts[buckets]["from"], over[place * len(over) // len(parts)]
        if at != to:
            why = f"{query} is spread over {', '.join(over)}"
            await _begin(
                node, forwarding, request, at, Wanted(parts[buckets]["publication"], to, why=why)
            )
            told.append(f"{query}: buckets {buckets[0]}-{buckets[1]} go from {at} to {to}")
    return told or [f"{query} is spread over {', '.join(over)} already"]


async def _places(
    node: Node, forwarding: Forwarding, request: Request, what: str, buckets: str | None
) -> list[tuple[str, str]]:
    """Nodes and publications."""
    within = None if buckets is None else parse_buckets(buckets)
    known: list[tuple[str, str]] = []
    for at, rows in await forwarding.get_all(request, node.directory.nodes(), "/network/fragments"):
        known += [(at.name, row["publication"]) for row in rows or []]
    short = what.removeprefix("#")
    found = [(at, name) for at, name in known if what == name or digest_of(name) == short]
    if found:
        if within is not None:
            raise WrongUse("--buckets is said of a query that is spread, not of a fragment")
        return found
    if _query(node, what) is None:
        names = sorted({str(digest_of(name)) for _, name in known})
        raise Unknown("fragment or query", what, names)
    inputs = await _inputs(node, forwarding, request, what)
    if within is not None:
        inputs = _within(what, inputs, within)
    return [(i["from"], i["publication"]) for i in inputs]


def _query(node: Node, name: str) -> Defined | None:
    entry = node.find(name)
    return entry if entry is not None and entry.kind == QUERY else None


async def _inputs(
    node: Node, forwarding: Forwarding, request: Request, what: str
) -> list[dict[str, Any]]:
    """What other nodes compute for a query. Raises Unknown, WrongUse, SiteError."""
    entry = _query(node, what)
    if entry is None:
        names = [d.name for d in node.directory.defined().values() if d.kind == QUERY]
        raise Unknown("query", what, names)
    if isinstance(node, PeerNode):
        raise WrongUse(f"peers compute {what} together, where the ring says: nothing of it moves")
    home = node_of(node.directory, entry.node)
    tree = await placed_tree(node, forwarding, request, home, entry.name_there)
    if tree is None:
        raise SiteError(f"node {entry.node}, which has {what}, does not answer")
    inputs = [i for i in tree["inputs"] if i.get("fragment") is not None]
    if not inputs:
        told = f"{what} runs whole at {entry.node}, and queries themselves do not move"
        raise WrongUse(f"{told}: drop it, and submit it with --movable")
    return inputs


def _parts(what: str, inputs: list[dict[str, Any]]) -> dict[Buckets, dict[str, Any]]:
    """By their buckets. Raises WrongUse, SiteError."""
    away = [i["from"] for i in inputs if i.get("part") is None]
    if away:
        raise SiteError(f"node {away[0]}, which has a part of {what}, does not answer")
    parts = {tuple(i["part"]["buckets"]): i for i in inputs if i["part"]["buckets"]}
    if not parts:
        raise WrongUse(f"{what} is not spread: drop it, and submit it with --spread")
    return parts


def _within(what: str, inputs: list[dict[str, Any]], within: Buckets) -> list[dict[str, Any]]:
    """The parts that have these buckets, and no others. Raises WrongUse."""
    parts = _parts(what, inputs)
    low, high = within
    chosen = [b for b in sorted(parts) if low <= b[0] and b[1] <= high]
    if sum(b[1] - b[0] + 1 for b in chosen) != high - low + 1:
        cuts = ", ".join(f"{a}-{b}" for a, b in sorted(parts))
        raise WrongUse(f"{what} has its buckets in parts ({cuts}): name one or several of them")
    return [parts[b] for b in chosen]
