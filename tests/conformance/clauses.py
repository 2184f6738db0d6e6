"""Which types stand in which clauses of a plan: counted, so that no pair is never drawn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from thalweg.plan import expr as ex
from thalweg.plan.nodes import (
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
    Window,
    walk,
)
from thalweg.plan.types import Kind, SqlType
from thalweg.plan.windows import RowsWindow, SessionWindow

ALL = ("BOOLEAN", "INTEGER", "BIGINT", "DOUBLE", "DECIMAL", "VARCHAR", "DATE", "TIMESTAMP")
NUMBERS = ("INTEGER", "BIGINT", "DOUBLE", "DECIMAL")
ORDERED = tuple(t for t in ALL if t != "BOOLEAN")

# BIGINT is what computed whole numbers are: where a clause takes columns alone, it is not there.
PAIRS = {
    "SELECT": ALL,
    "WHERE": ALL,
    "ON": ALL,
    "GROUP BY": ALL,
    "HAVING": ("INTEGER", "BIGINT", "VARCHAR", "DOUBLE", "DECIMAL"),
    "ORDER BY": ALL,
    "DISTINCT": ALL,
    "set operator": ("BOOLEAN", "INTEGER", "BIGINT", "DOUBLE", "DECIMAL", "VARCHAR", "DATE"),
    "IN": ("INTEGER", "BIGINT", "DOUBLE", "DECIMAL", "VARCHAR", "DATE", "TIMESTAMP"),
    "correlation": ("INTEGER", "BIGINT", "DOUBLE", "DECIMAL", "VARCHAR", "DATE", "TIMESTAMP"),
    "PARTITION BY": ALL,
    "count": ("INTEGER", "BIGINT", "VARCHAR"),
    "sum": NUMBERS,
    "avg": ("INTEGER", "DOUBLE"),
    "min": ORDERED,
    "max": ORDERED,
    "a value": ("INTEGER", "BIGINT", "DOUBLE", "DECIMAL", "VARCHAR", "DATE"),
}
WANTED = frozenset(f"{clause} × {kind}" for clause, kinds in PAIRS.items() for kind in kinds)


def pairs(plan: Node) -> Iterator[str]:
    """Every clause of the plan with the types of what stands in it."""
    for node in walk(plan):
        for clause, types in _clauses(node):
            for sql in types:
                yield f"{clause} × {_name(sql)}"


def _name(sql: SqlType) -> str:
    return "DECIMAL" if sql.kind is Kind.DECIMAL else sql.kind.value


def _clauses(node: Node) -> Iterator[tuple[str, Iterable[SqlType]]]:
    match node:
        case Project(_, exprs, _):
            yield "SELECT", (e.type for e in exprs)
        case Filter(below, predicate):
            yield "HAVING" if isinstance(below, Aggregate) else "WHERE", _types(predicate, below)
        case Join(inputs, condition):
            yield "ON", _types(condition, *inputs)
        case LeftJoin(left, right, condition):
            yield "ON", _types(condition, left, right)
            if isinstance(right, Aggregate | TopK):
                yield "a value", [right.schema[-1].type]
        case Mark(left, right, correlation, match):
            yield "correlation", _types(correlation, left, right)
            if match is not None:
                yield "IN", _types(match, left, right)
        case Aggregate(_, keys, calls, _):
            yield "GROUP BY", (k.type for k in keys)
            for call in calls:
                if call.arg is not None:
                    yield call.function, [call.arg.type]
        case TopK(_, keys, _, _):
            yield "ORDER BY", (k.expr.type for k in keys)
        case Distinct():
            yield "DISTINCT", (f.type for f in node.schema)
        case SetOp():
            yield "set operator", (f.type for f in node.schema)
        case Window(below, RowsWindow() | SessionWindow() as spec):
            yield "PARTITION BY", (below.schema[i].type for i in spec.partition_by)


def _types(expression: ex.Expr, *below: Node) -> Iterator[SqlType]:
    """Of the columns in an expression over these inputs' columns in a row."""
    fields = [f for node in below for f in node.schema]
    return (fields[i].type for i in sorted(ex.columns_of(expression)))
