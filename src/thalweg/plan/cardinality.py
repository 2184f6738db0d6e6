"""How many rows a relation can have, as far as its plan alone can tell."""

from __future__ import annotations

from thalweg.plan.nodes import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    LeftJoin,
    Mark,
    Node,
    Project,
    SetKind,
    SetOp,
    TopK,
)


def has_one_row_at_most(node: Node) -> bool:
    """Whether it never has two rows at one instant, whatever comes in."""
    match node:
        case Aggregate(_, keys, _, _):
            return not keys
        case TopK(source, _, count, partition_by):
            return (count == 1 and not partition_by) or has_one_row_at_most(source)
        case Filter(source, _) | Project(source, _, _) | Distinct(source) | Mark(source, _, _, _):
            return has_one_row_at_most(source)
        case Join(inputs, _):
            return all(has_one_row_at_most(n) for n in inputs)
        case LeftJoin(left, right, _):
            return has_one_row_at_most(left) and has_one_row_at_most(right)
        case SetOp(kind, _, left, right):
            if kind is SetKind.UNION:
                return False
            of_both = kind is SetKind.INTERSECT and has_one_row_at_most(right)
            return has_one_row_at_most(left) or of_both
        case _:
            return False
