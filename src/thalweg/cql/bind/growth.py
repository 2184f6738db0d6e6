"""Warnings of state that grows without end: joins that must remember an unbounded stream."""

from __future__ import annotations

from collections.abc import Sequence

from thalweg.cql.bind.context import Context
from thalweg.cql.errors import Span
from thalweg.plan.nodes import (
    Distinct,
    Filter,
    Join,
    LeftJoin,
    Mark,
    Node,
    Project,
    SetKind,
    SetOp,
    Window,
)
from thalweg.plan.windows import TimeWindow

HINT = "give it a window, such as [Range 1 hour], if old tuples can be forgotten"


def grows(node: Node) -> bool:
    """Whether the relation keeps tuples of a stream for ever."""
    match node:
        case Window(_, spec):
            return isinstance(spec, TimeWindow) and spec.length is None
        case Filter() | Project() | Distinct():
            return grows(node.input)
        case Mark(input, _, _, _):
            return grows(input)
        case Join(inputs, _):
            return all(grows(n) for n in inputs)
        case LeftJoin(left, _, _):
            return grows(left)
        case SetOp(kind, _, left, right):
            if kind is SetKind.UNION:
                return grows(left) or grows(right)
            return grows(left) and (kind is SetKind.EXCEPT or grows(right))
        case _:
            return False


def warn_of_growth(nodes: Sequence[Node], spans: Sequence[Span], context: Context) -> None:
    """For each input of a join."""
    for node, span in zip(nodes, spans, strict=True):
        if grows(node):
            context.warn("the join keeps every tuple of this input for ever", span, HINT)
