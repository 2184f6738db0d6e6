"""CAST between columns; what the target can't hold is NULL (docs/values.md)."""

from __future__ import annotations

import polars as pl

from thalweg.engine.shared.expressions import rowwise
from thalweg.engine.shared.expressions.rowwise import by_row
from thalweg.engine.shared.frames import dtype
from thalweg.plan.types import Kind, SqlType

_BITS = {Kind.INTEGER: 32, Kind.BIGINT: 64}


def cast(x: pl.Expr, source: SqlType, target: SqlType) -> pl.Expr:
    wanted = dtype(target)
    if source.kind is Kind.NULL:
        return pl.lit(None, dtype=wanted)
    if target.kind is Kind.VARCHAR:
        return _to_text(x, source)
    if source.kind is Kind.VARCHAR:
        return _from_text(x, target)
    if target.kind is Kind.BOOLEAN:
        return x != 0
    if target.kind is Kind.DECIMAL and source.kind in (Kind.DOUBLE, Kind.DECIMAL):
        return _to_decimal(x, source, target)
    if target.is_integer and source.kind is Kind.DOUBLE:
        return _nearest_whole(x, _BITS[target.kind]).cast(wanted, strict=False)
    if target.is_integer and source.kind is Kind.DECIMAL:
        bits = _BITS[target.kind]
        return by_row(lambda v: rowwise.whole_of_decimal(v, bits), wanted, x)
    if target.kind is Kind.DOUBLE and source.kind is Kind.DECIMAL:
        return by_row(float, wanted, x)
    if target.kind is Kind.DECIMAL and source.kind is Kind.BOOLEAN:
        return x.cast(pl.Int64).cast(wanted, strict=False)
    return x.cast(wanted, strict=False)


def _nearest_whole(x: pl.Expr, bits: int) -> pl.Expr:
    """Half away from zero; x minus its whole part is exact, so nothing is rounded twice."""
    whole = pl.when(x < 0).then(x.ceil()).otherwise(x.floor())
    away = pl.when((x - whole).abs() >= 0.5).then(x.sign()).otherwise(0.0)
    nearest = whole + away
    limit = float(1 << (bits - 1))
    return pl.when((nearest >= -limit) & (nearest < limit)).then(nearest)


def _to_decimal(x: pl.Expr, source: SqlType, target: SqlType) -> pl.Expr:
    scale = target.scale
    if source.kind is Kind.DECIMAL and source.scale <= scale:
        # More places only fail where the digits run out; Polars then gives NULL.
        return x.cast(dtype(target), strict=False)
    from decimal import Decimal

    read = (lambda v: Decimal(repr(v))) if source.kind is Kind.DOUBLE else (lambda v: v)
    return by_row(lambda v: rowwise.rescaled(read(v), scale), dtype(target), x)


def _to_text(x: pl.Expr, source: SqlType) -> pl.Expr:
    text = pl.String()
    match source.kind:
        case Kind.VARCHAR:
            return x
        case Kind.INTEGER | Kind.BIGINT:
            return x.cast(text)
        case Kind.BOOLEAN:
            return pl.when(x).then(pl.lit("true")).when(~x).then(pl.lit("false"))
        case Kind.DOUBLE:
            return by_row(repr, text, x)
        case Kind.DECIMAL:
            return by_row(lambda v: f"{v:f}", text, x)
        case Kind.DATE:
            return by_row(lambda v: v.isoformat(), text, x)
        case _:
            return by_row(rowwise.text_of_moment, text, x)


def _from_text(x: pl.Expr, target: SqlType) -> pl.Expr:
    wanted = dtype(target)
    match target.kind:
        case Kind.INTEGER | Kind.BIGINT:
            bits = _BITS[target.kind]
            return by_row(lambda v: rowwise.whole_of_text(v, bits), wanted, x)
        case Kind.DECIMAL:
            return by_row(lambda v: rowwise.decimal_of_text(v, target.scale), wanted, x)
        case Kind.DOUBLE:
            return by_row(rowwise.double_of_text, wanted, x)
        case Kind.BOOLEAN:
            return by_row(rowwise.boolean_of_text, wanted, x)
        case Kind.DATE:
            return by_row(rowwise.date_of_text, wanted, x)
        case _:
            return by_row(rowwise.moment_of_text, wanted, x)
