"""A query's shape: what is known of its result without looking at how it is computed.

Very many queries have the same few shapes, so they are kept where plans are not.
"""

from __future__ import annotations

from dataclasses import dataclass

from thalweg.plan.catalog import QueryDef, StreamDef
from thalweg.plan.nodes import Node, Schema, StreamKind, ToStream, base_streams


@dataclass(frozen=True, slots=True)
class Shape:
    schema: Schema
    streams: tuple[StreamDef, ...]  # that are read, in order of first appearance
    kind: StreamKind | None  # None: a relation

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.schema)


@dataclass(frozen=True, slots=True, eq=False)
class TemplateId:
    """Queries of one template have the same plan but for constants in conditions: what does not
    depend on these constants is computed for one of them only."""

    shape: Shape


def shape_of(query: QueryDef) -> Shape:
    return query.shape or shape_of_plan(query.plan)


def shape_of_plan(plan: Node) -> Shape:
    kind = plan.kind if isinstance(plan, ToStream) else None
    return Shape(plan.schema, base_streams(plan), kind)
