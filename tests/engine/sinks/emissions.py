"""Emissions made by hand, for the tests of sinks."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import polars as pl

from thalweg.engine.shared.results.emission import Emission, FamilyEmission, TickOutput

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


def output(*emissions: Emission | FamilyEmission, tick: int) -> TickOutput:
    return TickOutput(tick, emissions)


def emission(tick: int, *rows: tuple, query: str = "q") -> Emission:
    """Rows are (ts, op, values…); it is about the instants [tick - 1, tick)."""
    schema = {"_ts": pl.Int64, "_op": pl.Int8, **SCHEMA}
    frame = pl.DataFrame(rows, schema, orient="row")
    return Emission(query, 1, COLUMNS, tick - 1, tick, frame)


def numbers(tick: int, *values: int, query: str = "q") -> Emission:
    """One column `n`, a `+` for each value at the instant of the same number."""
    rows = [(v, 1, v) for v in values]
    schema = {"_ts": pl.Int64, "_op": pl.Int8, "c0": pl.Int64}
    frame = pl.DataFrame(rows, schema, orient="row")
    return Emission(query, 1, ("n",), tick - 1, tick, frame)
