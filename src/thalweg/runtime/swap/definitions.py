"""A join across nodes, as a statement that the query's node keeps.

It is a mirror like those of other nodes' streams, but that several nodes together feed it; what it
is stands in its options.
"""

from __future__ import annotations

import secrets

import msgspec

from thalweg.adapt.swap.query import SwapQuery
from thalweg.plan.catalog import StreamDef
from thalweg.runtime.data.statements import mirror_text
from thalweg.runtime.network.mirrors.mirrored import ALL_SITES

SWAP = "swap"  # the plan, as EXPLAIN names it
JOINED = "swap/"  # how names of their mirrors begin

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(SwapQuery).decode


def new_id(name: str) -> str:
    """In the whole network, for ever."""
    return f"{name.replace('/', '_')}#{secrets.token_hex(6)}"


Columns = tuple[tuple[str, ...], ...]  # of each stream, those that travel


def join_text(mirror: StreamDef, query: SwapQuery, columns: Columns) -> str:
    told = {
        "first": str(query.first),
        "join": _encode(query).decode(),
        "columns": _encode(columns).decode(),
    }
    return mirror_text(mirror, ALL_SITES, query.id, told)


def is_joined(stream: StreamDef) -> bool:
    return stream.name.startswith(JOINED)


def query_of(mirror: StreamDef) -> SwapQuery:
    return _decode(dict(mirror.options)["join"])


def columns_of(mirror: StreamDef) -> Columns:
    return msgspec.json.decode(dict(mirror.options)["columns"], type=Columns)
