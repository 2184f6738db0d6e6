"""Arithmetic: what a type can't hold is NULL, nothing wraps, and DOUBLE stays finite."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from typing import Any

import polars as pl

from thalweg.engine.shared.expressions import rowwise
from thalweg.engine.shared.expressions.functions.forms import Table, plain, typed
from thalweg.engine.shared.expressions.functions.moments import shifted
from thalweg.engine.shared.expressions.functions.wide import OPS, ZERO, truncated_division, wide
from thalweg.engine.shared.expressions.rowwise import by_row
from thalweg.engine.shared.frames import dtype
from thalweg.plan.expr import Call
from thalweg.plan.types import Kind, SqlType


def _finite(x: pl.Expr) -> pl.Expr:
    """DOUBLE results that are not finite are NULL; adding 0.0 turns -0.0 into 0.0."""
    return pl.when(x.is_finite()).then(x + 0.0)


def _arithmetic(expr: Call, args: list[pl.Expr], types: list[SqlType]) -> pl.Expr:
    a, b = args
    left, right = types
    if expr.type.kind in (Kind.TIMESTAMP, Kind.DATE, Kind.INTERVAL):
        return shifted(expr.function, a, b, left, right)
    if expr.function in OPS:
        op = OPS[expr.function]
        if expr.type.kind is Kind.DOUBLE:
            return _finite(op(a, b))
        if expr.type.kind is Kind.DECIMAL:
            return _decimal(op, expr, a, b)
        return wide(op, a, b)
    if expr.function == "/":
        if expr.type.kind is Kind.DOUBLE:
            return pl.when(b != 0).then(_finite(a / b))
        return truncated_division(a, b)
    return _remainder(a, b, expr.type)


def _decimal(op: Callable[..., Any], expr: Call, a: pl.Expr, b: pl.Expr) -> pl.Expr:
    """DECIMAL arithmetic by columns; value by value where more than 38 digits come up."""
    target, scale = dtype(expr.type), expr.type.scale

    def compute(columns: Sequence[pl.Series]) -> pl.Series:
        left, right = columns
        try:
            return op(left.cast(target), right.cast(target)).cast(target)
        except pl.exceptions.PolarsError:
            height = max(len(left), len(right))
            pairs = zip(*(c.extend_constant(c[0], height - len(c)) for c in columns), strict=True)
            return pl.Series([_exactly(op, x, y, scale) for x, y in pairs], dtype=target)

    return pl.map_batches([a, b], compute, return_dtype=target)


def _exactly(
    op: Callable[..., Any], x: Decimal | None, y: Decimal | None, scale: int
) -> Decimal | None:
    if x is None or y is None:
        return None
    with localcontext(prec=100):
        return rowwise.rescaled(op(x, y), scale)


def _remainder(a: pl.Expr, b: pl.Expr, type_: SqlType) -> pl.Expr:
    """The sign is the dividend's, as with truncating division."""
    divisor = pl.when(b != 0).then(b)
    if type_.kind is Kind.DECIMAL:
        scale = type_.scale
        wide = _remainder(_unscaled(a, scale), _unscaled(b, scale), SqlType(Kind.BIGINT))
        return _scaled(wide, type_)
    if type_.kind is Kind.DOUBLE:
        return _finite(by_row(math.fmod, pl.Float64(), a, divisor))
    wide_a, wide_b = a.cast(pl.Int128), divisor.cast(pl.Int128)
    rest = wide_a.abs() % wide_b.abs()
    return pl.when(a < 0).then(ZERO - rest).otherwise(rest).cast(pl.Int64, strict=False)


def _unscaled(x: pl.Expr, scale: int) -> pl.Expr:
    return (x.cast(pl.Decimal(38, scale)) * 10**scale).cast(pl.Int128)


def _scaled(x: pl.Expr, type_: SqlType) -> pl.Expr:
    return (x.cast(pl.Decimal(38, type_.scale)) / 10**type_.scale).cast(dtype(type_))


def _round(expr: Call, args: list[pl.Expr], types: list[SqlType]) -> pl.Expr:
    digits = args[1] if len(args) == 2 else pl.lit(0, dtype=pl.Int32)
    by_kind = {Kind.DOUBLE: rowwise.round_double, Kind.DECIMAL: rowwise.round_decimal}
    function = by_kind.get(types[0].kind, rowwise.round_whole)
    return by_row(function, dtype(expr.type), args[0], digits)


def _floor_or_ceil(expr: Call, args: list[pl.Expr], types: list[SqlType]) -> pl.Expr:
    (x,) = args
    if types[0].is_integer:
        return x
    return (
        _finite(x.floor() if expr.function == "floor" else x.ceil())
        if (types[0].kind is Kind.DOUBLE)
        else (x.floor() if expr.function == "floor" else x.ceil()).cast(dtype(types[0]))
    )


def _neg(expr: Call, args: list[pl.Expr], types: list[SqlType]) -> pl.Expr:
    (x,) = args
    if types[0].kind is Kind.DOUBLE:
        return 0.0 - x
    if types[0].kind is Kind.DECIMAL:
        return -x
    return wide(lambda zero, y: zero - y, pl.lit(0, dtype=pl.Int64), x)


def _abs(expr: Call, args: list[pl.Expr], types: list[SqlType]) -> pl.Expr:
    return pl.when(args[0] < 0).then(_neg(expr, args, types)).otherwise(args[0])


def _sign(expr: Call, args: list[pl.Expr], types: list[SqlType]) -> pl.Expr:
    (x,) = args
    one, zero = (pl.lit(n).cast(dtype(expr.type)) for n in (1, 0))
    return pl.when(x > 0).then(one).when(x < 0).then(-one).when(x == 0).then(zero)


def _power(_: Call, args: list[pl.Expr], __: list[SqlType]) -> pl.Expr:
    base, exponent = args
    return pl.when((base != 0) | (exponent >= 0)).then(_finite(base.pow(exponent)))


NUMBERS: Table = {
    **dict.fromkeys(("+", "-", "*", "/", "%"), typed(_arithmetic)),
    "neg": typed(_neg),
    "abs": typed(_abs),
    "sign": typed(_sign),
    "floor": typed(_floor_or_ceil),
    "ceil": typed(_floor_or_ceil),
    "round": typed(_round),
    "power": typed(_power),
    "sqrt": plain(lambda a: pl.when(a >= 0).then(_finite(a.sqrt()))),
    "exp": plain(lambda a: _finite(a.exp())),
    "ln": plain(lambda a: pl.when(a > 0).then(_finite(a.log()))),
}
