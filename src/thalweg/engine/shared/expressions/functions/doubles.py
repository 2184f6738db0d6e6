"""Arithmetic of DOUBLE: each result is the nearest DOUBLE, whatever else is in the column.

Polars divides by a constant by multiplying with its reciprocal, so that a row alone would differ
from the same row among others, and leaves out `+ 0.0`. NumPy computes as IEEE 754 says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl

OPERATORS: dict[str, Callable[..., Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "%": np.fmod,
    "neg": np.negative,
    "abs": np.abs,
    "sign": np.sign,
    "floor": np.floor,
    "ceil": np.ceil,
    "sqrt": np.sqrt,
}


def doubles(function: Callable[..., Any], *columns: pl.Expr) -> pl.Expr:
    """A function of arrays in which NULL is NaN, as is all that is not finite; -0.0 becomes 0.0."""

    def compute(series: Sequence[pl.Series]) -> pl.Series:
        with np.errstate(all="ignore"):
            values = function(*(s.to_numpy() for s in series)) + 0.0
            values[~np.isfinite(values)] = np.nan
        return pl.Series(values, dtype=pl.Float64, nan_to_null=True)

    return pl.map_batches(list(columns), compute, return_dtype=pl.Float64)


def finite(values: np.ndarray) -> np.ndarray:
    """What Polars has computed, only fitted."""
    return values
