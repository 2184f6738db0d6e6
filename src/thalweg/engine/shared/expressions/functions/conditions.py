"""Comparisons and logic with three values, and choices among values."""

from __future__ import annotations

from functools import reduce

import polars as pl

from thalweg.engine.shared.expressions.functions.forms import Table, plain, typed
from thalweg.plan.expr import Call
from thalweg.plan.types import SqlType


def _in(x: pl.Expr, *others: pl.Expr) -> pl.Expr:
    return reduce(lambda a, b: a | b, [x == other for other in others])


def _greatest(expr: Call, args: list[pl.Expr], _: list[SqlType]) -> pl.Expr:
    pick = (
        (lambda a, b: pl.when(a >= b).then(a).otherwise(b))
        if (expr.function == "greatest")
        else (lambda a, b: pl.when(a <= b).then(a).otherwise(b))
    )
    known = reduce(lambda x, y: x & y, [a.is_not_null() for a in args])
    return pl.when(known).then(reduce(pick, args))


CONDITIONS: Table = {
    "=": plain(lambda a, b: a == b),
    "<=>": plain(lambda a, b: a.eq_missing(b)),
    "<>": plain(lambda a, b: a != b),
    "<": plain(lambda a, b: a < b),
    "<=": plain(lambda a, b: a <= b),
    ">": plain(lambda a, b: a > b),
    ">=": plain(lambda a, b: a >= b),
    "and": plain(lambda *a: reduce(lambda x, y: x & y, a)),
    "or": plain(lambda *a: reduce(lambda x, y: x | y, a)),
    "not": plain(lambda a: ~a),
    "is_null": plain(lambda a: a.is_null()),
    "is_not_null": plain(lambda a: a.is_not_null()),
    "in": plain(_in),
    "coalesce": plain(lambda *a: pl.coalesce(*a)),
    "nullif": plain(lambda a, b: pl.when((a == b).fill_null(False)).then(None).otherwise(a)),
    "greatest": typed(_greatest),
    "least": typed(_greatest),
}
