"""Streams of due rows: of a base stream those that some tolerance class needs, and which do.

`due/S` has the columns of `S`, and a label: the numbers of the classes for which the row is due. So
a class is a condition on the label: edges of a tree merge the conditions of all who are below, and
readers take the rows of their class. What can't be said so (by age, below RSTREAM) reads the
unfiltered stream, and decides by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from msgspec import structs

from thalweg.engine.shared.state.names import LABEL
from thalweg.plan.catalog import Field, StreamDef
from thalweg.plan.coherency.tolerance import Age
from thalweg.plan.expr import Call, Col, Expr, Lit, conjuncts
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
from thalweg.plan.types import VARCHAR
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


def due_stream(stream: StreamDef) -> StreamDef:
    return StreamDef(
        due_name(stream.name),
        (*stream.fields, Field(LABEL, VARCHAR)),
        stream.timestamp,
        stream.timestamp_type,
        resolution_us=stream.resolution_us,
    )


def can_be_labelled(stream: StreamDef) -> bool:
    return LABEL not in {f.name.lower() for f in stream.fields}


def fed_entry(defined: Mapping[str, Defined], name: str) -> Defined | None:
    """Of what has a home: base streams, relations and tables, and streams of due rows."""
    found = defined.get(name.lower())
    if found is not None:
        return found if found.kind in FED else None
    base = base_of(name)
    entry = None if base is None else defined.get(base.lower())
    if entry is None or entry.kind != STREAM:
        return None
    made = due_stream(stream_of(entry))
    return structs.replace(entry, name=made.name, text=schema_text(made))


# --- classes


def class_text(node: Tolerant) -> str:
    """Equal for equal classes of a stream."""
    return tolerance_text(node.tolerance, node.column, node.per, node.schema)


def numbers_in(conditions: Iterable[Expr], label: int) -> frozenset[int] | None:
    """Of which classes rows are wanted, by conditions of which each is enough; None: of all."""
    found = [_numbers(condition, label) for condition in conditions]
    if None in found:
        return None
    return frozenset(n for numbers in found if numbers is not None for n in numbers)


def _numbers(condition: Expr, label: int) -> frozenset[int] | None:
    for part in conjuncts(condition):
        match part:
            case Call("has_any", (Col(index), Lit(str(words), _)), _) if index == label:
                return frozenset(map(int, words.split(",")))
            case _:
                pass
    return None


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


def with_labels(plan: Node, labels: Mapping[Tolerant, tuple[StreamDef, int]]) -> Node:
    """The same plan over streams of due rows: of each class its stream, and its number."""

    def change(node: Node) -> Node:
        below = _class_below(node)
        if below is None or below not in labels:
            return node
        assert isinstance(node, Window)
        stream, number = labels[below]
        place = next(i for i, f in enumerate(stream.fields) if f.name == LABEL)
        rows = DueRows(Scan(stream), place, number)
        due: Node
        if isinstance(node.spec, TimeWindow) and node.spec.bounds is None:
            # Above the window, as other conditions: such queries share.
            due = Filter(replace(node, input=Scan(stream)), rows.is_due)
        else:
            due = replace(node, input=rows)
        own, more = len(below.schema), len(due.schema) - len(stream.fields)  # bounds stand behind
        kept = [*range(own), *range(len(stream.fields), len(stream.fields) + more)]
        exprs = tuple(Col(i, due.schema[i].type, due.schema[i].name) for i in kept)
        return Project(due, exprs, tuple(f.name for f in node.schema))

    return transform(plan, change)
