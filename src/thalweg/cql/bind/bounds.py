"""Where a block speaks of its windows' bounds, `window_start` and `window_end`.

A window has them as columns only in a block that names them: without them a tuple is one row of a
hopping window, with them it is one for each window that it is in.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass

from thalweg.cql import syntax
from thalweg.plan.expr import Expr, columns_of
from thalweg.plan.nodes import (
    BOUND_NAMES,
    Aggregate,
    Distinct,
    Filter,
    Join,
    LeftJoin,
    Mark,
    Node,
    Project,
    SetOp,
    TopK,
    ToStream,
    Window,
    inputs_of,
)
from thalweg.plan.windows import HopWindow

Qualifiers = frozenset[str | None]  # in lower case; None where a bound is named without one


def named_bounds(select: syntax.Select, order: tuple[syntax.Expr, ...] = ()) -> Qualifiers:
    """What the block's clauses qualify bounds with, sub-queries that may see them included."""
    clauses = (select.items, select.where, select.group_by, select.having, order)
    conditions = [c for source in select.sources for c in _conditions(source)]
    return frozenset(
        None if ref.qualifier is None else ref.qualifier.lower()
        for part in (*clauses, conditions)
        for ref in _columns(part)
        if ref.name.lower() in BOUND_NAMES
    )


def _conditions(item: syntax.FromItem) -> Iterator[syntax.Expr]:
    if isinstance(item, syntax.JoinRef):
        yield from _conditions(item.left)
        yield from _conditions(item.right)
        if item.condition is not None:
            yield item.condition


def _columns(part: object) -> Iterator[syntax.ColumnRef]:
    """All references to columns below a part of the tree."""
    if isinstance(part, syntax.ColumnRef):
        yield part
    elif isinstance(part, tuple | list):
        for inner in part:
            yield from _columns(inner)
    elif is_dataclass(part):
        for f in fields(part):
            yield from _columns(getattr(part, f.name))


def hides_windows(relation: Node) -> bool:
    """Whether rows of one window can be equal to the next one's: then nothing seems to change."""
    return _hops(relation) and not _bound_columns(relation)


def _hops(node: Node) -> bool:
    if isinstance(node, Window):
        return isinstance(node.spec, HopWindow)
    return not isinstance(node, ToStream) and any(_hops(n) for n in inputs_of(node))


def _bound_columns(node: Node) -> frozenset[int]:
    """The columns that come from a window's bounds."""
    match node:
        case Window(source, spec):
            own = () if spec.bounds is None else range(len(BOUND_NAMES))
            return frozenset(len(source.schema) + i for i in own)
        case Filter(source, _) | Mark(source, _, _, _) | Distinct(source) | TopK(source, _, _, _):
            return _bound_columns(source)
        case Project(source, exprs, _) | Aggregate(source, exprs, _, _):
            return _looking(exprs, _bound_columns(source))
        case Join(inputs, _):
            return _side_by_side(inputs)
        case LeftJoin(left, right, _):
            return _side_by_side((left, right))
        case SetOp(_, _, left, right):
            return _bound_columns(left) & _bound_columns(right)
        case _:
            return frozenset()


def _looking(exprs: tuple[Expr, ...], bounds: frozenset[int]) -> frozenset[int]:
    return frozenset(i for i, e in enumerate(exprs) if columns_of(e) & bounds)


def _side_by_side(nodes: tuple[Node, ...]) -> frozenset[int]:
    found: set[int] = set()
    width = 0
    for node in nodes:
        found |= {width + c for c in _bound_columns(node)}
        width += len(node.schema)
    return frozenset(found)
