"""The relational operators on bags: what each plan node makes of its inputs at one instant.

A bag is a list of rows in no particular order. All loops are nested loops.
"""

from __future__ import annotations

from collections import Counter
from itertools import product

from thalweg.engine.arrivals import Row
from thalweg.engine.changelog import row_key
from thalweg.engine.reference.aggregates import aggregate
from thalweg.engine.reference.expressions import evaluate, holds
from thalweg.engine.reference.scalars import disjunction
from thalweg.plan.nodes import (
    Aggregate,
    Filter,
    Join,
    LeftJoin,
    Mark,
    Project,
    SetKind,
    SetOp,
    TopK,
)

Bag = list[Row]


def filtered(node: Filter, rows: Bag) -> Bag:
    return [row for row in rows if holds(node.predicate, row)]


def projected(node: Project, rows: Bag) -> Bag:
    return [tuple(evaluate(e, row) for e in node.exprs) for row in rows]


def joined(node: Join, inputs: list[Bag]) -> Bag:
    combined = (sum(parts, ()) for parts in product(*inputs))
    return [row for row in combined if holds(node.condition, row)]


def left_joined(node: LeftJoin, left: Bag, right: Bag) -> Bag:
    nothing = (None,) * len(node.right.schema)
    result: Bag = []
    for row in left:
        matches = [row + other for other in right if holds(node.condition, row + other)]
        result += matches or [row + nothing]
    return result


def marked(node: Mark, rows: Bag, subquery: Bag) -> Bag:
    def mark(row: Row) -> bool | None:
        both = [row + other for other in subquery if holds(node.correlation, row + other)]
        if node.match is None:
            return bool(both)
        return disjunction(*(evaluate(node.match, pair) for pair in both))

    return [(*row, mark(row)) for row in rows]


def grouped(node: Aggregate, rows: Bag, exists: bool) -> Bag:
    """NULL is a key like any other. Without keys there is one row as soon as `exists`."""
    groups: dict[Row, Bag] = {}
    if not node.keys and exists:
        groups[()] = []
    for row in rows:
        groups.setdefault(tuple(evaluate(k, row) for k in node.keys), []).append(row)
    return [
        (*key, *(aggregate(call, members) for call in node.aggregates))
        for key, members in groups.items()
    ]


def distinct(rows: Bag) -> Bag:
    return list(dict.fromkeys(rows))


def top(node: TopK, rows: Bag) -> Bag:
    """The first rows of each partition, in the order of the keys and then of all columns."""
    ordered = sorted(rows, key=row_key)
    for key in reversed(node.keys):  # sorting keeps the order of what is equal
        ordered.sort(key=lambda row: row_key((evaluate(key.expr, row),)), reverse=key.descending)
        nulls = [row for row in ordered if evaluate(key.expr, row) is None]
        values = [row for row in ordered if evaluate(key.expr, row) is not None]
        ordered = values + nulls if key.nulls_last else nulls + values
    kept: Bag = []
    seen: Counter[Row] = Counter()
    for row in ordered:
        partition = tuple(evaluate(e, row) for e in node.partition_by)
        seen[partition] += 1
        if seen[partition] <= node.count:
            kept.append(row)
    return kept


def combined(node: SetOp, left: Bag, right: Bag) -> Bag:
    ours, theirs = Counter(left), Counter(right)
    if not node.all:
        ours, theirs = Counter(set(left)), Counter(set(right))
    match node.kind:
        case SetKind.UNION:
            result = ours + theirs if node.all else ours | theirs
        case SetKind.EXCEPT:
            result = ours - theirs
        case SetKind.INTERSECT:
            result = ours & theirs
    return list(result.elements())
