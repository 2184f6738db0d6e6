"""Streams of due rows: of a base stream those that some tolerance class needs, and which do.

`due/S` has the columns of `S`, and for each class one that says whether the row is due for it. So a
class is a condition like any other: edges of a tree merge the conditions of all who are below, and
readers take the rows of their class. What can't be said so (by age, below RSTREAM) reads the
unfiltered stream, and decides by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from msgspec import structs

from thalweg.plan.catalog import Field, StreamDef
from thalweg.plan.coherency.tolerance import Age
from thalweg.plan.expr import Col
from thalweg.plan.nodes import (
    DueRows,
    Filter,
    Node,
    Project,
    Scan,
    StreamKind,
    Tolerant,
    ToStream,
    Window,
    transform,
    walk,
)
from thalweg.plan.text import tolerance_text
from thalweg.plan.types import BOOLEAN
from thalweg.plan.windows import TimeWindow
from thalweg.runtime.data.statements import schema_text
from thalweg.runtime.network.definitions import stream_of
from thalweg.runtime.network.directory import FED, STREAM, Defined

DUE = "due/"  # names of such streams begin like this, and no user's may


def due_name(stream: str) -> str:
    return DUE + stream


def base_of(name: str) -> str | None:
    """The stream whose due rows are meant; None: it is another kind of stream."""
    return name[len(DUE) :] if name.lower().startswith(DUE) else None


def due_stream(
    stream: StreamDef, labels: Iterable[str], known: StreamDef | None = None
) -> StreamDef:
    """As it is `known` here, with more labels."""
    fields = list(stream.fields if known is None else known.fields)
    there = {f.name for f in fields}
    fields += [Field(name, BOOLEAN) for name in dict.fromkeys(labels) if name not in there]
    return StreamDef(
        due_name(stream.name),
        tuple(fields),
        stream.timestamp,
        stream.timestamp_type,
        resolution_us=stream.resolution_us,
    )


def fed_entry(
    defined: Mapping[str, Defined],
    name: str,
    columns: Iterable[str] | None = None,
    known: StreamDef | None = None,
) -> Defined | None:
    """Of what has a home: base streams, relations and tables, and streams of due rows, which have
    those labels that are among the wanted columns, and those that are known here."""
    found = defined.get(name.lower())
    if found is not None:
        return found if found.kind in FED else None
    base = base_of(name)
    entry = None if base is None else defined.get(base.lower())
    if entry is None or entry.kind != STREAM:
        return None
    stream = stream_of(entry)
    own = {f.name for f in stream.fields}
    made = due_stream(stream, (c for c in columns or () if c not in own), known)
    return structs.replace(entry, name=made.name, text=schema_text(made))


# --- classes


def class_text(node: Tolerant) -> str:
    """Equal for equal classes of a stream."""
    return tolerance_text(node.tolerance, node.column, node.per, node.schema)


def label_name(text: str, number: int) -> str:
    """Of the column for a class, each time that one starts: a name that needs no quotes, and still
    tells people what it stands for (`tolerance_price_1_percent_per_symbol_7`)."""
    return f"{re.sub('[^a-z0-9]+', '_', text.lower())}_{number}"


def labelled_classes(plan: Node) -> tuple[Tolerant, ...]:
    """The classes of a query that labels can stand for."""
    if any(isinstance(n, ToStream) and n.kind is StreamKind.RSTREAM for n in walk(plan)):
        return ()  # it speaks at every tuple's instant, due or not
    return tuple(dict.fromkeys(c for n in walk(plan) if (c := _class_below(n)) is not None))


def _class_below(node: Node) -> Tolerant | None:
    """Of a window over a class that labels can stand for."""
    match node:
        case Window(Tolerant(Scan(stream), tolerance, _, _) as below, _):
            # By age, a row passes at another instant than its own.
            is_plain = not stream.is_placed and not isinstance(tolerance, Age)
            return below if is_plain else None
        case _:
            return None


def with_labels(plan: Node, labels: Mapping[Tolerant, tuple[StreamDef, str]]) -> Node:
    """The same plan over streams of due rows: of each class its stream, and its column."""

    def change(node: Node) -> Node:
        below = _class_below(node)
        if below is None or below not in labels:
            return node
        assert isinstance(node, Window)
        stream, label = labels[below]
        place = next(i for i, f in enumerate(stream.fields) if f.name == label)
        due: Node
        if isinstance(node.spec, TimeWindow) and node.spec.bounds is None:
            # Above the window, as other conditions: such queries share.
            due = Filter(replace(node, input=Scan(stream)), Col(place, BOOLEAN, label))
        else:
            due = replace(node, input=DueRows(Scan(stream), place))
        own, more = len(below.schema), len(due.schema) - len(stream.fields)  # bounds stand behind
        kept = [*range(own), *range(len(stream.fields), len(stream.fields) + more)]
        exprs = tuple(Col(i, due.schema[i].type, due.schema[i].name) for i in kept)
        return Project(due, exprs, tuple(f.name for f in node.schema))

    return transform(plan, change)
