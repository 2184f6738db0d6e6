"""Whole plans as bytes and as text: what nodes hand each other, and what a statement can hold.

Who reads a plan knows its streams by name, and puts its own definitions in their place (`rebound`):
lateness, sources and the like are the affair of a stream's home.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable

import msgspec

from thalweg.plan import nodes
from thalweg.plan.catalog import StreamDef
from thalweg.plan.encoding import PLAN_TAGS, Codec, EncodingError, Tags
from thalweg.plan.nodes import Node

VERSION = 1  # of the nodes below: raised when one of them changes its meaning

_NODES: Tags = {
    "scan": nodes.Scan,
    "tolerant": nodes.Tolerant,
    "labelled rows": nodes.DueRows,
    "window": nodes.Window,
    "filter": nodes.Filter,
    "project": nodes.Project,
    "join": nodes.Join,
    "left join": nodes.LeftJoin,
    "mark": nodes.Mark,
    "aggregate": nodes.Aggregate,
    "distinct": nodes.Distinct,
    "first rows": nodes.TopK,
    "set operator": nodes.SetOp,
    "to stream": nodes.ToStream,
}
# As nodes write it; `cql/parser/statements.py` reads it.
_CLAUSE = re.compile(r""" PLACED '[A-Za-z0-9+/=]*' OVER \((?:"(?:[^"]|"")*"(?:, )?)*\)""")
_CODEC = Codec({**PLAN_TAGS, **_NODES})
# What a constructor can say to values that no plan has.
_WRONG = (ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError)


def encode_plan(plan: Node) -> bytes:
    """Equal plans have equal bytes."""
    return msgspec.msgpack.encode([VERSION, _CODEC.plain(plan)])


def decode_plan(data: bytes) -> Node:
    """Raises EncodingError."""
    try:
        version, plain = msgspec.msgpack.decode(data)
    except (*_WRONG, msgspec.DecodeError) as error:
        raise EncodingError(f"these bytes are no plan ({error})") from None
    if version != VERSION:
        raise EncodingError(f"a plan of version {version}, and this one reads {VERSION}")
    try:
        plan = _CODEC.decode(msgspec.msgpack.encode(plain))
        schemas = [n.schema for n in nodes.walk(plan)]
    except _WRONG as error:
        raise EncodingError(f"these bytes are no plan ({error})") from None
    if not schemas or not isinstance(plan, Node):
        raise EncodingError("these bytes are no plan")
    return plan


def plan_text(plan: Node) -> str:
    return base64.b64encode(encode_plan(plan)).decode()


def plan_of_text(text: str) -> Node:
    """Raises EncodingError."""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise EncodingError(f"this text is no plan ({error})") from None
    return decode_plan(data)


def without_plan(text: str) -> str:
    """Of a statement that holds a plan, what its user has written."""
    return _CLAUSE.sub("", text, count=1) if " PLACED '" in text else text


def rebound(plan: Node, find: Callable[[str], StreamDef | None]) -> Node:
    """The same plan over one's own streams. Raises EncodingError if one of them is not there, or
    is not the one that is meant."""

    def scan(node: Node) -> Node:
        if not isinstance(node, nodes.Scan):
            return node
        meant, own = node.stream, find(node.stream.name)
        if own is None:
            raise EncodingError(f"the plan reads {meant.name}, and there is no such stream")
        if meant.is_placed:
            own = own.placed()
        if (own.fields, own.is_relation) != (meant.fields, meant.is_relation):
            raise EncodingError(f"the plan reads another {meant.name}")
        return nodes.Scan(own)

    return nodes.transform(plan, scan)
