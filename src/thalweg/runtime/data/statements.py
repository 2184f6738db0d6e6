"""The statement by which a node makes a stream of its own out of another node's."""

from __future__ import annotations

from collections.abc import Mapping

from thalweg.engine.site.publications import MIRRORS
from thalweg.plan.catalog import StreamDef
from thalweg.plan.nodes import DueRows, Node, Scan, Tolerant, Window, walk
from thalweg.plan.types import TIMESTAMP
from thalweg.plan.windows import HopWindow, TimeWindow

PEERS = "peers:"  # FROM 'peers:ID': a stream that is fed at any node (`runtime/peers`)
INSTANT = "_at"  # stamps a relation's changes: its rows may have come long before


def mirror_text(
    stream: StreamDef,
    home: str,
    publication: str,
    options: Mapping[str, str] | None = None,
    *,
    scheme: str = MIRRORS,
) -> str:
    """Lateness and silence are judged at home, so that nothing is late here."""
    told = {"publication": publication, **(options or {})}
    written = ", ".join(f"{name} {_text(value)}" for name, value in told.items())
    columns = ", ".join(f"{quoted(f.name)} {f.type}" for f in stream.fields)
    kind = "RELATION" if stream.is_relation else "STREAM"
    return (
        f"CREATE {kind} {quoted(stream.name)} ({columns}) TIMESTAMP BY {_timestamp(stream)} "
        f"RESOLUTION {stream.resolution_us} MICROSECONDS "
        f"FROM {_text(scheme + home)} OPTIONS ({written})"
    )


def schema_text(stream: StreamDef) -> str:
    """The statement that tells other nodes what a stream looks like, and no more; of a stream of
    peers, also its name in their register and how time is judged."""
    columns = ", ".join(f"{quoted(f.name)} {f.type}" for f in stream.fields)
    resolution = f"RESOLUTION {stream.resolution_us} MICROSECONDS"
    if stream.is_table:
        key = f", PRIMARY KEY ({', '.join(map(quoted, stream.key))})" if stream.key else ""
        return f"CREATE TABLE {quoted(stream.name)} ({columns}{key}) {resolution}"
    kind = "RELATION" if stream.is_relation else "STREAM"
    explicit = "" if stream.timestamp_index is not None else f" {stream.timestamp_type}"
    stamp = f"TIMESTAMP BY {quoted(stream.timestamp)}{explicit}"
    made = f"CREATE {kind} {quoted(stream.name)} ({columns}) {stamp} {resolution}"
    if stream.source is None or not stream.source.startswith(PEERS):
        return made
    options = ", ".join(f"{name} {_text(value)}" for name, value in stream.options)
    return f"{made} FROM {_text(stream.source)} OPTIONS ({options})"


def _timestamp(stream: StreamDef) -> str:
    if stream.timestamp_index is not None and not stream.is_relation:
        return quoted(stream.timestamp)
    counted = stream.timestamp_type.is_integer
    name = INSTANT if stream.is_relation else stream.timestamp
    return f"{quoted(name)} {'BIGINT' if counted else TIMESTAMP}"


def reach_of(plan: Node, stream: str) -> int | None:
    """How many instants of a stream's past a query looks at when it begins; None: all there are."""
    found = 0
    for node in walk(plan):
        match node:
            case Tolerant(Scan(of), _, _, _) if of.name == stream:
                return None  # what a class holds may have passed long ago
            case Window(DueRows(Scan(of), _, _), _) if of.name == stream:
                return None
            case Window(Scan(of), spec) if of.name == stream:
                if not isinstance(spec, TimeWindow | HopWindow) or spec.length is None:
                    return None
                found = max(found, spec.length + spec.slide)
    return found


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
