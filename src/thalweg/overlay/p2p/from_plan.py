"""A query of the algebra as one between peers; what peers can't do is refused, with the reason.

Peers do select-project-join blocks over [Range] and [Now] windows, with an equality between any two
parts, conditions of columns beside constants, and comparisons between streams (DHTJoin 4.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, timedelta

from thalweg.overlay.p2p.planning import Rate, plan_joins
from thalweg.overlay.p2p.query import BadQuery, Between, Condition, JoinQuery, Leaf
from thalweg.overlay.protocol import Address
from thalweg.plan.blocks import Block, block_of, leaves_of
from thalweg.plan.expr import Call, Col, Expr, Lit
from thalweg.plan.nodes import Aggregate, Distinct, Node, Scan, ToStream, Window
from thalweg.plan.types import Kind
from thalweg.plan.windows import RowsWindow, TimeWindow

_OPS = {"=": "=", "<>": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_TURNED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_INSTEAD = "; a network without --mode p2p can run it"


def join_query(
    plan: Node,
    name: str,
    asker: Address,
    rates: Mapping[str, Rate] | None = None,
    eager: bool = False,
) -> JoinQuery:
    """Raises BadQuery. The plan is made from the rates, where there are any."""
    block = block_of(plan, _leaf)
    if len(block.leaves) < 2:
        raise BadQuery("a query of one stream has nothing to join between peers" + _INSTEAD)
    of_leaf, between = block.conditions_by_leaf()
    leaves = []
    for (stream, window), conditions in zip(block.leaves, of_leaf, strict=True):
        leaves.append(Leaf(stream, window, tuple([_condition(c) for c in conditions])))
    comparisons = tuple([_between(c, block) for c in between])
    outputs = tuple([_column(e, block, "selected") for e in block.exprs()])
    joins, rest = plan_joins(tuple(leaves), comparisons, rates or {})
    return JoinQuery(name, asker, tuple(leaves), joins, outputs, rest, eager)


def _leaf(node: Node) -> Block[tuple[str, int]]:
    match node:
        case Window(Scan(stream), TimeWindow(int(length), 1)) if not stream.is_relation:
            return Block(((stream.name, length),), (tuple([f.type for f in stream.fields]),))
        case Window(_, RowsWindow()):
            raise BadQuery(
                "a Rows window over many sources depends on the order of all of them, "
                "which no peer sees" + _INSTEAD
            )
        case Window(_, TimeWindow(None)):
            raise BadQuery(
                "an unbounded window never lets go of a tuple, and peers' memory is "
                "for windows" + _INSTEAD
            )
        case Window(_, TimeWindow()):
            raise BadQuery("peers don't slide windows" + _INSTEAD)
        case Aggregate() | Distinct():
            raise BadQuery(
                "peers select, project and join; aggregates and DISTINCT stand above "
                "all buckets" + _INSTEAD
            )
        case ToStream():
            raise BadQuery("peers answer with a relation's changelog, not with a stream" + _INSTEAD)
    raise BadQuery(f"peers can't run {type(node).__name__}" + _INSTEAD)


def _condition(expr: Expr) -> Condition:
    match expr:
        case Call(op, (Col() as col, Lit(value))) if op in _OPS:
            return Condition(_compared(col).index, op, _constant(value))
        case Call(op, (Lit(value), Col() as col)) if op in _OPS:
            return Condition(_compared(col).index, _TURNED[op], _constant(value))
    raise BadQuery(
        f"peers compare columns with constants, and this is another condition: {expr}" + _INSTEAD
    )


def _compared(column: Col) -> Col:
    if column.type.kind is Kind.DECIMAL:
        raise BadQuery("a DECIMAL travels between peers as text, and is not compared" + _INSTEAD)
    return column


def _constant(value: object) -> int | float | str | bool | None:
    """Dates and times as what they count, as they travel."""
    if isinstance(value, datetime):
        return (value - datetime(1970, 1, 1)) // timedelta(microseconds=1)
    if isinstance(value, date):
        return (value - date(1970, 1, 1)).days
    if value is None or isinstance(value, int | float | str | bool):
        return value
    raise BadQuery(f"peers don't compare with constants of this type: {value!r}" + _INSTEAD)


def _between(expr: Expr, block: Block[tuple[str, int]]) -> Between:
    match expr:
        case Call(op, (Col() as left, Col() as right)) if op in _OPS:
            at = _column(_compared(left), block, "compared")
            other = _column(_compared(right), block, "compared")
            return Between(*at, op, *other)
    raise BadQuery(f"peers compare two columns, and this is another condition: {expr}" + _INSTEAD)


def _column(expr: Expr, block: Block[tuple[str, int]], done: str) -> tuple[int, int]:
    if not isinstance(expr, Col):
        raise BadQuery(
            f"peers send columns as they stand; an expression is {done}: {expr}" + _INSTEAD
        )
    (leaf,) = leaves_of(expr, block.starts)
    return leaf, expr.index - block.starts[leaf]
