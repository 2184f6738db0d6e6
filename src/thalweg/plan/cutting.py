"""Plans cut in two: what one node computes for another, and what stands in its place there.

A part that is a relation travels as its changes, one that is a stream as its tuples, each with its
instant and its place among those of the instant. Who reads a part sees the content that it has at
every instant, and nothing else. So nothing that looks at more than that may stand above a cut:

- RSTREAM speaks at the instants of all tuples below it, whether they change anything or not;
- a stream inside of a query, and an aggregate without keys, depend on what was before the query's
  first instant. Of a part that begins in the middle, this is not known: there, only a part that
  has begun with its streams will do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from thalweg.plan import nodes
from thalweg.plan.catalog import Field, StreamDef
from thalweg.plan.expr import Col
from thalweg.plan.nodes import Node, StreamKind
from thalweg.plan.types import BIGINT, INTERVAL, NULL, TIMESTAMP
from thalweg.plan.windows import HopWindow, TimeWindow

STAMP = "_at"  # stamps what a part says


@dataclass(frozen=True, slots=True)
class Place:
    """An operator of a plan that another node may compute."""

    path: tuple[int, ...]  # from the root: which input, then which of its inputs
    node: Node
    from_beginning: bool  # only if nothing has come yet


def places(plan: Node) -> Iterator[Place]:
    """Where a plan may be cut, the root itself included; parents first."""
    yield from _places(plan, (), False)


def _places(node: Node, path: tuple[int, ...], inside: bool) -> Iterator[Place]:
    is_inner_stream = node.is_stream and bool(path)
    if _can_travel(node):
        yield Place(path, node, inside or is_inner_stream)
    if isinstance(node, nodes.ToStream) and node.kind is StreamKind.RSTREAM:
        return
    lasts = isinstance(node, nodes.Aggregate) and not node.keys
    for number, below in enumerate(nodes.inputs_of(node)):
        yield from _places(below, (*path, number), inside or is_inner_stream or lasts)


def _can_travel(node: Node) -> bool:
    if isinstance(node, nodes.Scan):
        return False  # there is nothing to compute
    if any(isinstance(n, nodes.Tolerant | nodes.DueRows) for n in nodes.walk(node)):
        return False  # where a class of readers starts decides which rows are due
    has_clock = any(not s.is_table for s in nodes.base_streams(node))
    return has_clock and all(f.type not in (INTERVAL, NULL) for f in node.schema)


def part_schema(plan: Node, name: str) -> StreamDef:
    """What a part looks like to its reader: a stream, or a relation."""
    clock = next(s for s in nodes.base_streams(plan) if not s.is_table)
    fields = tuple(Field(_column(i), f.type) for i, f in enumerate(plan.schema))
    counted = clock.timestamp_type.is_integer
    return StreamDef(
        name,
        fields,
        STAMP,
        BIGINT if counted else TIMESTAMP,
        is_relation=not plan.is_stream,
        resolution_us=clock.resolution_us,
    )


def part_plan(plan: Node) -> Node:
    """What computes a part: the plan, with names for its columns that are all different."""
    if isinstance(plan, nodes.ToStream):
        return nodes.ToStream(plan.kind, _named(plan.input, plan.input.schema))
    return _named(plan, plan.schema)


def in_its_place(part: Node, stream: StreamDef) -> Node:
    """What stands for a part where it is read."""
    names = tuple(f.name for f in part.schema)
    columns = tuple(Col(i, f.type) for i, f in enumerate(part.schema))
    scan = nodes.Scan(stream)
    if not part.is_stream:
        return nodes.Project(scan, columns, names)
    # RSTREAM over [Now] says each tuple once, at its instant; ISTREAM leaves out one that is equal
    # to one of the instant before.
    now = nodes.Window(scan, TimeWindow(0))
    return nodes.ToStream(StreamKind.RSTREAM, nodes.Project(now, columns, names))


def cut(plan: Node, path: tuple[int, ...], stream: StreamDef) -> Node:
    """The plan with a stream in the place of an operator."""
    if not path:
        return in_its_place(plan, stream)
    inputs = list(nodes.inputs_of(plan))
    inputs[path[0]] = cut(inputs[path[0]], path[1:], stream)
    return nodes.with_inputs(plan, tuple(inputs))


def at(plan: Node, path: tuple[int, ...]) -> Node:
    for number in path:
        plan = nodes.inputs_of(plan)[number]
    return plan


def reach(plan: Node) -> int | None:
    """How long a plan remembers a tuple; None: for ever, or as long as others decide."""
    found = 0
    if isinstance(plan, nodes.ToStream):
        plan = plan.input
    for node in nodes.walk(plan):
        match node:
            case nodes.Window(nodes.Scan(), TimeWindow(length, slide)) if length is not None:
                found = max(found, length + slide)
            case nodes.Window(nodes.Scan(), HopWindow() as hop):
                found = max(found, hop.length + hop.slide)
            case nodes.Window() | nodes.ToStream():
                return None
            case nodes.Aggregate(_, ()):  # its row stays once it was there
                return None
    return found


def _named(node: Node, schema: nodes.Schema) -> Node:
    columns = tuple(Col(i, f.type) for i, f in enumerate(schema))
    return nodes.Project(node, columns, tuple(_column(i) for i in range(len(schema))))


def _column(number: int) -> str:
    return f"c{number}"
