"""Emissions made by hand, for the tests of sinks."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import polars as pl

from thalweg.engine.shared.results.results import Emission

SCHEMA = {
    "c0": pl.Int64,
    "c1": pl.String,
    "c2": pl.Float64,
    "c3": pl.Decimal(38, 2),
    "c4": pl.Date,
    "c5": pl.Datetime("us"),
    "c6": pl.Boolean,
}
COLUMNS = ("a", "ts", "X.A", "price", "day", "at", "ok")
PLAIN = (1, "one", 0.5, Decimal("1.50"), date(2025, 1, 2), datetime(2025, 1, 2, 3, 4, 5), True)
NULLS = (None,) * 7


def emission(tick: int, *rows: tuple, query: str = "q") -> Emission:
    """Rows are (ts, op, values…)."""
    schema = {"_ts": pl.Int64, "_op": pl.Int8, **SCHEMA}
    return Emission(query, tick, COLUMNS, pl.DataFrame(rows, schema, orient="row"))


def numbers(tick: int, *values: int, query: str = "q") -> Emission:
    """One column `n`, a `+` for each value at the instant of the same number."""
    rows = [(v, 1, v) for v in values]
    schema = {"_ts": pl.Int64, "_op": pl.Int8, "c0": pl.Int64}
    return Emission(query, tick, ("n",), pl.DataFrame(rows, schema, orient="row"))
