"""Whole numbers in 128 bits: what overflows 64 is seen, and becomes NULL."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from thalweg.engine.shared.expressions.functions.comparing import unequal

OPS: dict[str, Callable[[pl.Expr, pl.Expr], pl.Expr]] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
}
ZERO = pl.lit(0, dtype=pl.Int128)  # Polars has no minus sign for 128 bits


def wide(op: Callable[[pl.Expr, pl.Expr], pl.Expr], a: pl.Expr, b: pl.Expr) -> pl.Expr:
    """Integer arithmetic in 128 bits, so that what overflows 64 becomes NULL and never wraps."""
    return op(a.cast(pl.Int128), b.cast(pl.Int128)).cast(pl.Int64, strict=False)


def truncated_division(a: pl.Expr, b: pl.Expr) -> pl.Expr:
    wide_a, wide_b = a.cast(pl.Int128), pl.when(b != 0).then(b).cast(pl.Int128)
    quotient = wide_a.abs() // wide_b.abs()
    negative = unequal(a < 0, b < 0)
    signed = pl.when(negative).then(ZERO - quotient).otherwise(quotient)
    return signed.cast(pl.Int64, strict=False)
