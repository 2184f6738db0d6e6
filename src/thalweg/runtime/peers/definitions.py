"""Streams and joins of peers, as statements that a site keeps.

A stream of peers has no home: tuples come in at any node. Its name in the register is new each time
that it is made, since a register is made once. A join that peers compute is a mirror like those of
other nodes' streams, but that all peers together feed it; what it is stands in its options.
"""

from __future__ import annotations

import secrets

from thalweg.overlay.p2p.index_messages import EventTime
from thalweg.overlay.p2p.query import JoinQuery, from_text, to_text
from thalweg.plan.catalog import StreamDef
from thalweg.runtime.data.statements import PEERS, mirror_text, schema_text
from thalweg.runtime.network.mirrors.mirrored import ALL_PEERS

JOINS = "peers/"  # how names of their mirrors begin


def new_id(name: str) -> str:
    """In the whole network, for ever."""
    return f"{name}#{secrets.token_hex(6)}"


def name_of(id_: str) -> str:
    return id_.rpartition("#")[0]


# --- streams


def is_peers_stream(stream: StreamDef) -> bool:
    return stream.source is not None and stream.source.startswith(PEERS)


def stream_id(stream: StreamDef) -> str:
    assert stream.source is not None
    return stream.source.removeprefix(PEERS)


def stream_text(stream: StreamDef, id_: str) -> str:
    """What every node has to know of a stream: also how its sources judge time."""
    options = f"lateness '{stream.lateness}'"
    if stream.idle_ms is not None:
        options += f", idle_ms '{stream.idle_ms}'"
    source = f"{PEERS}{id_}".replace("'", "''")
    return f"{schema_text(stream)} FROM '{source}' OPTIONS ({options})"


def time_of(stream: StreamDef) -> EventTime:
    options = dict(stream.options)
    idle_ms = options.get("idle_ms")
    return EventTime(int(options["lateness"]), None if idle_ms is None else int(idle_ms) * 1_000)


# --- joins


def join_text(mirror: StreamDef, query: JoinQuery) -> str:
    return mirror_text(mirror, ALL_PEERS, query.id, {"join": to_text(query)})


def is_join(stream: StreamDef) -> bool:
    return stream.name.startswith(JOINS)


def join_of(mirror: StreamDef) -> JoinQuery:
    return from_text(dict(mirror.options)["join"])
