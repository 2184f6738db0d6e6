"""GROUP BY: from expressions over the input's rows to expressions over the groups' rows.

While a clause is bound, an aggregate is a column behind the input's last one. When all clauses are
known, `over_groups` replaces keys and aggregates by the Aggregate node's columns.
"""

from __future__ import annotations

from dataclasses import replace

from thalweg.cql.errors import Span
from thalweg.plan.aggregates import AggCall
from thalweg.plan.expr import Call, Case, Cast, Col, Expr

# The value of a sub-query is a column from here on, until the rows are known that it stands beside:
# the input's for one in GROUP BY or inside an aggregate, the groups' for one elsewhere.
DEFERRED = 1 << 22


class Aggregates:
    """The aggregate calls of one block, each once, in order of first appearance."""

    def __init__(self, width: int) -> None:
        self._width = width
        self.calls: dict[AggCall, Span] = {}

    def column(self, call: AggCall, span: Span) -> Col:
        self.calls.setdefault(call, span)
        place = list(self.calls).index(call)
        return Col(self._width + place, call.type, call.function)


class NotGrouped(Exception):
    """A column that is neither a key nor inside an aggregate."""

    def __init__(self, column: Col) -> None:
        super().__init__(column.name)
        self.column = column


def over_groups(expr: Expr, keys: dict[Expr, int], width: int) -> Expr:
    """The expression over (keys, aggregates), given one over (input columns, aggregates)."""
    place = keys.get(expr)
    if place is not None:
        return Col(place, expr.type, expr.name if isinstance(expr, Col) else "")
    match expr:
        case Col(index, type_, name):
            if index < width:
                raise NotGrouped(expr)
            if index >= DEFERRED:
                return expr
            return Col(index - width + len(keys), type_, name)
        case Call(_, args, _):
            return replace(expr, args=tuple(over_groups(a, keys, width) for a in args))
        case Cast(arg, _):
            return replace(expr, arg=over_groups(arg, keys, width))
        case Case(branches, otherwise, _):
            moved = tuple(
                (over_groups(c, keys, width), over_groups(v, keys, width)) for c, v in branches
            )
            return replace(expr, branches=moved, otherwise=over_groups(otherwise, keys, width))
        case _:
            return expr
