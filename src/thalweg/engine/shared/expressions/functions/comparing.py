"""Comparisons of columns and constants, on either side.

Polars compares a constant on the left with a column that repeats one value (a row that a join has
multiplied, a constant of a view) as if the column had one row. On the right it is right.
"""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

Comparison = Callable[[pl.Expr, pl.Expr], pl.Expr]


def _either_side(compare: Comparison, mirrored: Comparison) -> Comparison:
    def compared(a: pl.Expr, b: pl.Expr) -> pl.Expr:
        is_constant = not a.meta.root_names()
        return mirrored(b, a) if is_constant else compare(a, b)

    return compared


def _symmetric(compare: Comparison) -> Comparison:
    return _either_side(compare, compare)


equal = _symmetric(lambda a, b: a == b)
unequal = _symmetric(lambda a, b: a != b)
same = _symmetric(lambda a, b: a.eq_missing(b))  # equal, or both NULL
less = _either_side(lambda a, b: a < b, lambda b, a: b > a)
at_most = _either_side(lambda a, b: a <= b, lambda b, a: b >= a)
greater = _either_side(lambda a, b: a > b, lambda b, a: b < a)
at_least = _either_side(lambda a, b: a >= b, lambda b, a: b <= a)
