"""Which columns tell a relation's rows apart, as far as its plan alone can say."""

from __future__ import annotations

from collections.abc import Iterable

from thalweg.plan.cardinality import has_one_row_at_most
from thalweg.plan.expr import Call, Col, Expr, conjunction, conjuncts
from thalweg.plan.nodes import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    LeftJoin,
    Mark,
    Node,
    Project,
    Scan,
    SetKind,
    SetOp,
    TopK,
    Window,
)
from thalweg.plan.windows import RowsWindow


def tells_rows_apart(node: Node, columns: frozenset[int]) -> bool:
    """Whether no two rows ever agree in these columns at one instant, whatever comes in."""
    if has_one_row_at_most(node):
        return True
    match node:
        case Scan(stream):
            return bool(stream.key) and columns.issuperset(stream.key_indexes)
        case Window(_, RowsWindow(1, 1, keys)):
            return columns.issuperset(keys)
        case Filter(Join(inputs, on), condition):
            return _joined_apart(inputs, conjunction([on, condition]), columns)
        case Filter(source, condition):
            return tells_rows_apart(source, _closed(columns, condition))
        case Project(source, exprs, _):
            plain = {e.index for i, e in enumerate(exprs) if i in columns and isinstance(e, Col)}
            return tells_rows_apart(source, frozenset(plain))
        case Aggregate(_, keys, _, _):
            return columns.issuperset(range(len(keys)))
        case Distinct(source):
            return _are_all(columns, node) or tells_rows_apart(source, columns)
        case TopK(source, _, count, partition_by):
            by = {e.index if isinstance(e, Col) else None for e in partition_by}
            first_of_each = count == 1 and columns.issuperset(by)
            return first_of_each or tells_rows_apart(source, columns)
        case Mark(source, _, _, _):
            return tells_rows_apart(source, columns)
        case Join(inputs, condition):
            return _joined_apart(inputs, condition, columns)
        case LeftJoin(left, right, condition):
            # Of a left row's matches, those that agree in what the condition takes from the left.
            width = len(left.schema)
            known = _closed(columns | frozenset(range(width)), condition)
            return tells_rows_apart(left, _part(columns, 0, width)) and tells_rows_apart(
                right, _part(known, width, len(right.schema))
            )
        case SetOp(kind, all_, left, right):
            if kind is SetKind.UNION:
                return not all_ and _are_all(columns, node)
            of_both = kind is SetKind.INTERSECT and tells_rows_apart(right, columns)
            return tells_rows_apart(left, columns) or of_both
        case _:
            return False


def _joined_apart(inputs: tuple[Node, ...], condition: Expr, columns: frozenset[int]) -> bool:
    """Inputs whose row is known, one after the other: its other columns may tell the next one's."""
    left, known, offset = [], columns, 0
    for node in inputs:
        left.append((node, offset))
        offset += len(node.schema)
    while left:
        known = _closed(known, condition)
        found = [
            (node, at)
            for node, at in left
            if tells_rows_apart(node, _part(known, at, len(node.schema)))
        ]
        if not found:
            return False
        for node, at in found:
            known |= frozenset(range(at, at + len(node.schema)))
        left = [item for item in left if item not in found]
    return True


def _closed(columns: frozenset[int], condition: Expr) -> frozenset[int]:
    """With the columns that are equal to one of them."""
    pairs = [
        (a.index, b.index)
        for c in conjuncts(condition)
        if isinstance(c, Call) and c.function == "=" and len(c.args) == 2
        for a, b in [c.args]
        if isinstance(a, Col) and isinstance(b, Col)
    ]
    known = set(columns)
    for _ in pairs:
        known.update(y for pair in pairs for x, y in (pair, pair[::-1]) if x in known)
    return frozenset(known)


def _part(columns: Iterable[int], offset: int, width: int) -> frozenset[int]:
    return frozenset(c - offset for c in columns if offset <= c < offset + width)


def _are_all(columns: frozenset[int], node: Node) -> bool:
    return columns.issuperset(range(len(node.schema)))
