"""Dates, timestamps and intervals, in days and microseconds."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from thalweg.engine.shared.expressions import rowwise
from thalweg.engine.shared.expressions.functions.forms import Table, plain, typed
from thalweg.engine.shared.expressions.functions.wide import OPS, truncated_division, wide
from thalweg.engine.shared.expressions.rowwise import by_row
from thalweg.plan.expr import Call, Lit
from thalweg.plan.types import Kind, SqlType

# Years 1 to 9999, what Python's datetime, Spark's and everybody's printing agree on.
_EARLIEST_DAY, _LATEST_DAY = -719_162, 2_932_896
_EARLIEST_US, _LATEST_US = -62_135_596_800_000_000, 253_402_300_799_999_999
_MICROS = {
    "millisecond": 1_000,
    "second": 1_000_000,
    "epoch": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
}


def shifted(function: str, a: pl.Expr, b: pl.Expr, left: SqlType, right: SqlType) -> pl.Expr:
    """Sums and differences in which a moment or an interval takes part."""
    if left.kind is Kind.DATE and right.is_integer:
        moved = wide(OPS[function], a.cast(pl.Int32).cast(pl.Int64), b)
        inside = moved.is_between(_EARLIEST_DAY, _LATEST_DAY)
        return pl.when(inside).then(moved).cast(pl.Int32).cast(pl.Date)
    micros_a = a.cast(pl.Int64) if left.is_temporal else a
    micros_b = b.cast(pl.Int64) if right.is_temporal else b
    result = wide(OPS[function], micros_a, micros_b)
    if left.is_temporal != right.is_temporal:
        return _bounded_timestamp(result)
    return result


def _bounded_timestamp(micros: pl.Expr) -> pl.Expr:
    inside = micros.is_between(_EARLIEST_US, _LATEST_US)
    return pl.when(inside).then(micros).cast(pl.Datetime("us"))


def _part(expr: Call) -> str:
    part = expr.args[0]
    assert isinstance(part, Lit), "the binder holds this"
    return str(part.value).lower()


def _extract(expr: Call, args: list[pl.Expr], types: list[SqlType]) -> pl.Expr:
    part, x = _part(expr), args[1]
    if types[1].kind is Kind.INTERVAL:
        return truncated_division(x, pl.lit(_MICROS[part], dtype=pl.Int64))
    parts: dict[str, Callable[[], pl.Expr]] = {
        "year": x.dt.year,
        "month": x.dt.month,
        "day": x.dt.day,
        "hour": x.dt.hour,
        "minute": x.dt.minute,
        "second": x.dt.second,
        "dow": lambda: x.dt.weekday() % 7,
        "doy": x.dt.ordinal_day,
        "epoch": lambda: x.cast(pl.Int64) // 1_000_000,
    }
    return parts[part]().cast(pl.Int64)


def _date_trunc(expr: Call, args: list[pl.Expr], _: list[SqlType]) -> pl.Expr:
    steps = {
        "year": "1y",
        "month": "1mo",
        "week": "1w",
        "day": "1d",
        "hour": "1h",
        "minute": "1m",
        "second": "1s",
    }
    return args[1].dt.truncate(steps[_part(expr)])


MOMENTS: Table = {
    "extract": typed(_extract),
    "date_trunc": typed(_date_trunc),
    "add_months": plain(lambda *a: by_row(rowwise.add_months, pl.Datetime("us"), *a)),
}
