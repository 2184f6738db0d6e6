"""A query of users as one of peers: the join that they compute, and what the asker does with it.

Peers compute the select-project-join block at the bottom of a plan. It comes to the asker as a
relation's changes, and whatever stands above it (aggregates with keys, DISTINCT, ISTREAM, …) runs
there, where a plan may be cut (`plan/cutting.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import msgspec

from thalweg.overlay.p2p.from_plan import join_query
from thalweg.overlay.p2p.planning import Rate
from thalweg.overlay.p2p.query import BadQuery, JoinQuery
from thalweg.plan.catalog import QueryDef, StreamDef
from thalweg.plan.cutting import Place, cut, part_schema, places
from thalweg.plan.expr import Col
from thalweg.plan.nodes import (
    Filter,
    Join,
    Node,
    Project,
    Scan,
    StreamKind,
    ToStream,
    Window,
    base_streams,
    walk,
)
from thalweg.plan.windows import TimeWindow
from thalweg.runtime.peers.definitions import JOINS, is_peers_stream, new_id, stream_id

Rates = Callable[[str], float | None]  # of a stream: tuples an instant; None: not known
INSTEAD = "; a network without --mode p2p can"


@dataclass(frozen=True, slots=True)
class Asked:
    join: JoinQuery
    mirror: StreamDef  # of what peers compute
    plan: Node  # the query over it


def asked(
    query: QueryDef, asker: str, rates: Rates = lambda _: None, *, eager: bool = False
) -> Asked:
    """Raises BadQuery: what peers can't do, and who can. `rates` are measured ones, by streams'
    ids."""
    if query.from_now:
        raise BadQuery(
            "FROM NOW is an instant of one node, and peers join from the instant on at which all "
            "sources know of a query" + INSTEAD
        )
    for stream in base_streams(query.plan):
        if not is_peers_stream(stream):
            raise BadQuery(f"{stream.name} is not a stream of peers" + INSTEAD)
    place = _block(query.plan)
    if eager and place.path:
        raise BadQuery(
            "combinations at once are of a select-project-join alone, and this query does more; "
            "submit it without --eager"
        )
    ids = {s.name: stream_id(s) for s in base_streams(place.node)}
    known = {name: rate for name, id_ in ids.items() if (rate := rates(id_))}
    planned = _rates_of(known, ids)
    join = join_query(place.node, new_id(query.name), asker, planned, eager=eager)
    leaves = tuple([msgspec.structs.replace(f, stream=ids[f.stream]) for f in join.leaves])
    told = tuple([(ids[name], rate) for name, rate in known.items()])
    join = msgspec.structs.replace(join, leaves=leaves, rates=told)
    mirror = part_schema(place.node, JOINS + join.id)
    if not eager:
        return Asked(join, mirror, cut(query.plan, place.path, mirror))
    mirror = replace(mirror, is_relation=False)
    return Asked(join, mirror, _at_once(place.node, mirror))


def _rates_of(known: Mapping[str, float], streams: Iterable[str]) -> dict[str, Rate]:
    """A stream that nothing has come of yet is taken to be as fast as the others on average."""
    usual = sum(known.values()) / len(known) if known else 1.0
    return {s: Rate(1_000 * known.get(s, usual)) for s in streams}


def _block(plan: Node) -> Place:
    """The topmost select-project-join; one that is refused says why."""
    for place in places(plan):
        if isinstance(place.node, Scan | Window) or not _is_block(place.node):
            continue
        if place.from_beginning:
            raise BadQuery(
                "an aggregate without GROUP BY, or a stream inside of a query, depends on tuples "
                "that no result shows, and peers send results only" + INSTEAD
            )
        return place
    if any(isinstance(n, ToStream) and n.kind is StreamKind.RSTREAM for n in walk(plan)):
        raise BadQuery(
            "RSTREAM speaks at the instants of all tuples, and peers send results only" + INSTEAD
        )
    raise BadQuery("a query of one stream has nothing to join between peers" + INSTEAD)


def _is_block(node: Node) -> bool:
    """Whether a join stands at its top, under selections and projections."""
    while isinstance(node, Filter | Project):
        node = node.input
    return isinstance(node, Join)


def _at_once(part: Node, stream: StreamDef) -> Node:
    """Each row once, as it comes."""
    names = tuple(f.name for f in part.schema)
    columns = tuple(Col(i, f.type) for i, f in enumerate(part.schema))
    now = Window(Scan(stream), TimeWindow(0))
    return ToStream(StreamKind.RSTREAM, Project(now, columns, names))
