"""Arithmetic: what a type can't hold is NULL, nothing wraps, and DOUBLE stays finite."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from typing import Any

import polars as pl

from thalweg.engine.shared.expressions import rowwise
from thalweg.engine.shared.expressions.functions.doubles import OPERATORS, doubles, finite
from thalweg.engine.shared.expressions.functions.forms import Table, plain, typed
from thalweg.engine.shared.expressions.functions.moments import shifted
from thalweg.engine.shared.expressions.functions.wide import OPS, ZERO, truncated_division, wide
from thalweg.engine.shared.expressions.rowwise import by_row, row_by_row
from thalweg.engine.shared.frames import dtype
from thalweg.plan.expr import Call
from thalweg.plan.types import Kind, SqlType


def _arithmetic(expr: Call, args: list[pl.Expr], types: list[SqlType]) -> pl.Expr:
    a, b = args
    if expr.type.kind in (Kind.TIMESTAMP, Kind.DATE, Kind.INTERVAL):
        return shifted(expr.function, a, b, *types)
    if expr.type.kind is Kind.DOUBLE:
        return doubles(OPERATORS[expr.function], a, b)
    if expr.function == "%":
        return _remainder(a, b, expr.type)
    if expr.function == "/":
        return truncated_division(a, b)
    op = OPS[expr.function]
    return _decimal(op, expr, a, b) if expr.type.kind is Kind.DECIMAL else wide(op, a, b)


def _decimal(op: Callable[..., Any], expr: Call, a: pl.Expr, b: pl.Expr) -> pl.Expr:
    """DECIMAL arithmetic by columns; value by value where more than 38 digits come up."""
    target, scale = dtype(expr.type), expr.type.scale

    def compute(columns: Sequence[pl.Series]) -> pl.Series:
        left, right = columns
        try:
            return op(left.cast(target), right.cast(target)).cast(target)
        except pl.exceptions.PolarsError:
            return row_by_row(lambda x, y: _exactly(op, x, y, scale), target, columns)

    return pl.map_batches([a, b], compute, return_dtype=target)


def _exactly(op: Callable[..., Any], x: Decimal, y: Decimal, scale: int) -> Decimal | None:
    with localcontext(prec=100):
        return rowwise.rescaled(op(x, y), scale)


def _remainder(a: pl.Expr, b: pl.Expr, type_: SqlType) -> pl.Expr:
    """The sign is the dividend's, as with truncating division."""
    if type_.kind is Kind.DECIMAL:
        return by_row(rowwise.decimal_remainder, dtype(type_), a, b)
    wide_a, wide_b = a.cast(pl.Int128), pl.when(b != 0).then(b).cast(pl.Int128)
    rest = wide_a.abs() % wide_b.abs()
    return pl.when(a < 0).then(ZERO - rest).otherwise(rest).cast(pl.Int64, strict=False)


def _round(expr: Call, args: list[pl.Expr], types: list[SqlType]) -> pl.Expr:
    digits = args[1] if len(args) == 2 else pl.lit(0, dtype=pl.Int32)
    by_kind = {Kind.DOUBLE: rowwise.round_double, Kind.DECIMAL: rowwise.round_decimal}
    function = by_kind.get(types[0].kind, rowwise.round_whole)
    return by_row(function, dtype(expr.type), args[0], digits)


def _floor_or_ceil(expr: Call, args: list[pl.Expr], types: list[SqlType]) -> pl.Expr:
    (x,) = args
    if types[0].is_integer:
        return x
    if types[0].kind is Kind.DOUBLE:
        return doubles(OPERATORS[expr.function], x)
    function = rowwise.decimal_floor if expr.function == "floor" else rowwise.decimal_ceil
    return by_row(function, dtype(expr.type), x)


def _neg(_: Call, args: list[pl.Expr], types: list[SqlType]) -> pl.Expr:
    (x,) = args
    if types[0].kind is Kind.DOUBLE:
        return doubles(OPERATORS["neg"], x)
    if types[0].kind is Kind.DECIMAL:
        return -x
    return wide(lambda zero, y: zero - y, pl.lit(0, dtype=pl.Int64), x)


def _abs(expr: Call, args: list[pl.Expr], types: list[SqlType]) -> pl.Expr:
    if types[0].kind is Kind.DOUBLE:
        return doubles(OPERATORS["abs"], *args)
    return pl.when(args[0] < 0).then(_neg(expr, args, types)).otherwise(args[0])


def _sign(expr: Call, args: list[pl.Expr], types: list[SqlType]) -> pl.Expr:
    (x,) = args
    if types[0].kind is Kind.DOUBLE:
        return doubles(OPERATORS["sign"], x)
    if types[0].kind is Kind.DECIMAL:
        return by_row(rowwise.decimal_sign, dtype(expr.type), x)
    return pl.when(x > 0).then(1).when(x < 0).then(-1).when(x == 0).then(0).cast(pl.Int64)


NUMBERS: Table = {
    **dict.fromkeys(("+", "-", "*", "/", "%"), typed(_arithmetic)),
    "neg": typed(_neg),
    "abs": typed(_abs),
    "sign": typed(_sign),
    "floor": typed(_floor_or_ceil),
    "ceil": typed(_floor_or_ceil),
    "round": typed(_round),
    # Row by row: the same value has the same result to the bit, whatever stands beside it.
    "power": plain(lambda a, b: by_row(rowwise.power, pl.Float64(), a, b)),
    "sqrt": plain(lambda a: doubles(OPERATORS["sqrt"], a)),
    "exp": plain(lambda a: doubles(finite, a.exp())),
    "ln": plain(lambda a: doubles(finite, a.log())),
}
