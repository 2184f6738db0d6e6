"""Names for physical columns, which have none: those of the streams, carried upwards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from thalweg.engine.shared.compile import physical as ph
from thalweg.plan.aggregates import AggCall
from thalweg.plan.catalog import PLACE, Field, StreamDef
from thalweg.plan.expr import Col, Expr
from thalweg.plan.nodes import BOUND_NAMES, Schema
from thalweg.plan.text import aggregate_text, expr_text
from thalweg.plan.types import BIGINT
from thalweg.plan.windows import WindowSpec

Streams = Mapping[str, StreamDef]


def schema_of(op: ph.AnyOp, streams: Streams) -> Schema:
    """The operator's columns as a person would call them."""
    match op:
        case ph.BaseStream():
            return streams[op.stream].fields
        case ph.Source():
            stream = streams[op.stream]
            # In groups, tuples carry their instant, whatever the stream's own columns are.
            stamp = (Field(f"instant of {stream.name}", BIGINT),) if op.stamped else ()
            place = PLACE if op.placed else ()
            return stream.fields + place + stamp + _bounds(op.window)
        case ph.PlacedOf():
            return schema_of(op.input, streams) + PLACE
        case ph.TimeOf() | ph.SessionsOf():
            return schema_of(op.input, streams) + _bounds(op.window)
        case ph.Matches(_, _, (member, *types)):
            # What the members' profiles project, in their order.
            projected = (Field(f"output {i}", t) for i, t in enumerate(types, 1))
            return Field("member", member), *projected
        case ph.Map(source, _, exprs):
            return _named(exprs, schema_of(source, streams))
        case ph.Join():
            return _named(op.exprs, joined_schema(op, streams))
        case ph.Partials(source, keys, args):
            return _named((*keys, *args), schema_of(source, streams))
        case ph.Aggregate(source, keys, aggregates):
            below = schema_of(source, streams)
            return _named(keys, below) + tuple(_aggregated(a, below) for a in aggregates)
        case _:
            return schema_of(ph.inputs_of(op)[0], streams)


def _bounds(window: WindowSpec) -> Schema:
    bounds = window.bounds
    return () if bounds is None else tuple(Field(name, bounds.type) for name in BOUND_NAMES)


def joined_schema(op: ph.Join, streams: Streams) -> Schema:
    """The inputs' columns side by side; where a name is not unique, its input says which."""
    labels = input_labels(op)
    parts = [schema_of(i, streams) for i in op.inputs]
    seen = Counter(f.name.lower() for part in parts for f in part)
    return tuple(
        Field(f.name if seen[f.name.lower()] == 1 else f"{label}.{f.name}", f.type)
        for label, part in zip(labels, parts, strict=True)
        for f in part
    )


def input_labels(op: ph.Join) -> list[str]:
    """What a join's inputs are called: their stream, numbered where it is there twice."""
    names = [_label(i) for i in op.inputs]
    seen: Counter[str] = Counter()
    labels = []
    for name in names:
        seen[name] += 1
        labels.append(name if names.count(name) == 1 else f"{name}({seen[name]})")
    return labels


def _label(op: ph.AnyOp) -> str:
    """A base stream's own name; else what the input is made of."""
    match op:
        case ph.Source(stream, _, _, _) | ph.BaseStream(stream, _, _):
            return stream
        case ph.Exchange() | ph.Map() | ph.Changes() | ph.StreamOf():
            return _label(op.input)
        case (
            ph.RowsOf()
            | ph.SessionsOf()
            | ph.TimeOf()
            | ph.TolerantOf()
            | ph.PlacedOf()
            | ph.DueOf()
        ):
            return _label(op.input)
        case ph.Distinct() | ph.Aggregate():
            return f"{type(op).__name__.lower()} {_label(op.input)}"
        case _:
            return "+".join(sorted(ph.base_names(op)))


def _named(exprs: tuple[Expr, ...], schema: Schema) -> Schema:
    return tuple(
        schema[e.index] if isinstance(e, Col) else Field(expr_text(e, schema), e.type)
        for e in exprs
    )


def _aggregated(call: AggCall, schema: Schema) -> Field:
    return Field(aggregate_text(call, schema), call.type)
