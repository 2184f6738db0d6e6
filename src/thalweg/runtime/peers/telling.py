"""EXPLAIN among peers: the plan of a join, who has which values, and what it waits for."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from thalweg.engine.site.explanation import Explanation
from thalweg.engine.site.status import instant_words
from thalweg.overlay.p2p.planning import explain
from thalweg.overlay.p2p.query import JoinQuery
from thalweg.overlay.p2p.tuples import Buckets
from thalweg.overlay.routing import id_of
from thalweg.plan.catalog import QueryDef, StreamDef
from thalweg.plan.windows import FOREVER
from thalweg.runtime.peers.definitions import join_of, name_of
from thalweg.runtime.peers.lacking import lacking_text
from thalweg.runtime.peers.peers import Peers


def explanation(
    query: QueryDef,
    mirrors: Sequence[StreamDef],
    peers: Peers,
    names: Mapping[str, str],
    streams: Mapping[str, StreamDef],
    lacks: dict[str, Any],
) -> Explanation:
    """`names` are the nodes' by address, `streams` those of the network by name; `lacks` is what is
    missing in the results."""
    told = [_told(join_of(m), peers, names, streams) for m in mirrors]
    lines = [query.name]
    for found in told:
        lines += found["plan"]
        first = found["streams"][0]["name"]  # all of a query count in the same instants
        if found["exact"]:
            upto = words(found["final"], first, streams)
            lines.append(f"  counts from {_begins(found, first, streams)}, final up to {upto}")
        else:
            lines.append("  rows may be missing where owners change")
        for stream in found["streams"]:
            sources = ", ".join(stream["sources"]) or "nobody yet"
            upto = words(stream["frontier"], stream["name"], streams)
            lines.append(f"  {stream['name']} up to {upto}; sources: {sources}")
        lines.append("  values by the hash of what is joined on:")
        lines += [f"    {o['node']}: {100 * o['share']:.1f} %" for o in found["owners"]]
    if missing := lacking_text(lacks, lambda instant, stream: words(instant, stream, streams)):
        lines.append(f"  {missing}")
    return Explanation("\n".join(lines), json.dumps({"query": query.name, "joins": told, **lacks}))


def planned(name: str, join: JoinQuery, streams: Mapping[str, StreamDef]) -> dict[str, Any]:
    plan = _plan(join, streams)
    return {"query": name, "plan": plan, "type": 1 if join.is_type_1 else 2}


def _plan(join: JoinQuery, streams: Mapping[str, StreamDef]) -> list[str]:
    def column_of(stream: str, column: int) -> str:
        known = streams.get(name_of(stream).lower())
        return str(column) if known is None else known.fields[column].name

    return explain(join, name_of, column_of)


def would(found: Sequence[dict[str, Any]]) -> Explanation:
    """Of queries that do not stand yet."""
    text = "\n".join("\n".join([f["query"], *f["plan"]]) for f in found)
    return Explanation(text, json.dumps(found))


def _told(
    join: JoinQuery, peers: Peers, names: Mapping[str, str], streams: Mapping[str, StreamDef]
) -> dict[str, Any]:
    def look(standing: Any) -> tuple[int | None, int]:
        return standing.horizon, standing.said

    horizon, final = peers.query(join.id, look) or (None, 0)
    return {
        "plan": _plan(join, streams),
        "type": 1 if join.is_type_1 else 2,
        "exact": not join.eager,
        "horizon": horizon,
        "final": final,
        "streams": [_stream(s, peers, names) for s in join.streams],
        "owners": owners(peers, names),
    }


def _stream(stream: str, peers: Peers, names: Mapping[str, str]) -> dict[str, Any]:
    status = peers.look(stream, 2.0)
    sources = [] if status is None else [names.get(a, a) for _, _, a in status.sources]
    frontier = 0 if status is None else status.frontier
    return {"name": name_of(stream), "frontier": frontier, "sources": sorted(set(sources))}


def owners(peers: Peers, names: Mapping[str, str]) -> list[dict[str, Any]]:
    """By ring position, among those that run as far as this node knows."""
    ring, buckets = peers.ring()
    by_id = sorted(ring, key=id_of)
    found = []
    for place, address in enumerate(by_id):
        before, own = id_of(by_id[place - 1]), id_of(address)
        runs = Buckets(buckets).between(before, own)
        owned = sum(last - first + 1 for first, last in runs)
        found.append(
            {"node": names.get(address, address), "buckets": runs, "share": owned / buckets}
        )
    return sorted(found, key=lambda o: str(o["node"]))


def _begins(found: dict[str, Any], stream: str, streams: Mapping[str, StreamDef]) -> str:
    horizon = found["horizon"]
    if horizon is None:
        return "when all its streams have sources"
    return words(horizon, stream, streams)


def words(instant: int, stream: str, streams: Mapping[str, StreamDef]) -> str:
    """An instant as a stream writes it."""
    known = streams.get(stream.lower())
    if instant >= FOREVER:
        return "the end"
    if known is None:
        return str(instant)
    return instant_words(instant, known.resolution_us, known.timestamp_type.is_temporal)
