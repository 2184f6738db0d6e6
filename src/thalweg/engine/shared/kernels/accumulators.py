"""Sums as columns that add up: what a value contributes, and what the columns then say.

| argument | columns under a prefix | exact because |
|---|---|---|
| whole numbers | `s` | 38 digits hold more 64-bit numbers than there will be |
| DECIMAL | `s`, `h`: the lower 18 digits and the rest | a sum may pass 38 digits and come back |
| DOUBLE | `l:<lane>`, as many as are used | see `exact` |

`n` is the number of values that are not NULL.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import polars as pl

from thalweg.engine.shared.expressions import exact
from thalweg.engine.shared.frames import W, dtype
from thalweg.plan.types import Kind, SqlType

ROWS = "_rows"
LONG = pl.Decimal(38, 0)
_HALF = 10**18
_DIGITS = Context(prec=80)


def value_name(i: int) -> str:
    """The column with the values of argument i."""
    return f"_v{i}"


def extreme_name(side: str, i: int) -> str:
    """The column with the least (`min`) or greatest (`max`) value of argument i."""
    return f"_{side}_v{i}"


def sum_prefix(how: str, i: int) -> str:
    """Names an argument's accumulators: `p` over all values, `d` over distinct ones."""
    return f"_{how}{i}"


def is_sum(column: str) -> bool:
    return column == ROWS or column.startswith(("_p", "_d"))


def contributed(
    frame: pl.DataFrame, kept: list[pl.Expr], summed: Mapping[int, SqlType], how: str
) -> pl.DataFrame:
    """What each row adds, beside the columns that are kept; `summed` are arguments' types."""
    sums = [
        e
        for i, type_ in summed.items()
        for e in added(type_, pl.col(value_name(i)), pl.col(W), sum_prefix(how, i))
    ]
    doubles = [i for i, type_ in summed.items() if type_.kind is Kind.DOUBLE]
    found = frame.select(*kept, *sums, *(value_name(i) for i in doubles), W)
    for i in doubles:
        found = with_lanes(found, value_name(i), W, sum_prefix(how, i))
    return found.drop(W, *(value_name(i) for i in doubles))


def added(type_: SqlType, value: pl.Expr, weight: pl.Expr, prefix: str) -> list[pl.Expr]:
    """The columns of one row; those of a DOUBLE come from `with_lanes`."""
    present = pl.when(value.is_not_null()).then(weight).otherwise(0).alias(f"{prefix}n")
    times = weight.cast(pl.Int128)
    if type_.is_integer:
        parts = {"s": value.cast(pl.Int128) * times}
    elif type_.kind is Kind.DECIMAL:
        whole = value.to_physical()
        parts = {"s": whole % _HALF * times, "h": whole // _HALF * times}
    else:
        parts = {}
    sums = [e.cast(LONG).fill_null(0).alias(f"{prefix}{part}") for part, e in parts.items()]
    return [present, *sums]


def with_lanes(frame: pl.DataFrame, column: str, weight: str, prefix: str) -> pl.DataFrame:
    """A DOUBLE column's lanes beside the frame."""
    values = frame[column].fill_null(0.0).to_numpy()
    lanes = exact.lanes_of(values, frame[weight].to_numpy())
    return frame.with_columns(pl.Series(f"{prefix}l:{n}", lane) for n, lane in lanes.items())


def total(type_: SqlType, steps: pl.DataFrame, prefix: str, result: SqlType) -> pl.Series:
    """SUM after each step; NULL where there is no value, or where it does not fit."""
    count = steps[f"{prefix}n"]
    if type_.kind is Kind.DOUBLE:
        return _finite(exact.sums(_lanes(steps, prefix), steps.height), count)
    if type_.kind is Kind.DECIMAL:
        sums = [_scaled(s, type_.scale) if n else None for s, n in _wholes(steps, prefix, count)]
        return pl.Series(sums, dtype=dtype(result))
    frame = pl.DataFrame({"n": count, "s": steps[f"{prefix}s"]})
    some = pl.when(pl.col("n") > 0).then(pl.col("s"))
    return frame.select(some.cast(dtype(result), strict=False)).to_series()


def mean(type_: SqlType, steps: pl.DataFrame, prefix: str) -> pl.Series:
    """AVG after each step: the exact sum by the count, rounded once."""
    count = steps[f"{prefix}n"]
    if type_.kind is Kind.DOUBLE:
        some = np.maximum(count.to_numpy(), 1)
        return _finite(exact.means(_lanes(steps, prefix), steps.height, some), count)
    if type_.kind is Kind.DECIMAL:
        unit = 10**type_.scale
        means = [
            float(Fraction(s, unit * n)) if n else None for s, n in _wholes(steps, prefix, count)
        ]
    else:
        pairs = zip(steps[f"{prefix}s"].to_list(), count.to_list(), strict=True)
        means = [float(Fraction(s) / n) if n else None for s, n in pairs]
    return pl.Series(means, dtype=pl.Float64)


def _lanes(steps: pl.DataFrame, prefix: str) -> dict[int, np.ndarray]:
    start = f"{prefix}l:"
    return {
        int(c.removeprefix(start)): steps[c].to_numpy()
        for c in steps.columns
        if c.startswith(start)
    }


def _finite(values: np.ndarray, count: pl.Series) -> pl.Series:
    some = (count.to_numpy() > 0) & np.isfinite(values)
    return (
        pl.DataFrame({"v": values + 0.0, "some": some})
        .select(pl.when("some").then("v"))
        .to_series()
    )


def _wholes(steps: pl.DataFrame, prefix: str, count: pl.Series) -> list[tuple[int, int]]:
    """A DECIMAL's sum as an unscaled number, with the count."""
    columns = (steps[f"{prefix}s"].to_list(), steps[f"{prefix}h"].to_list(), count.to_list())
    return [(int(low) + int(high) * _HALF, n) for low, high, n in zip(*columns, strict=True)]


def _scaled(unscaled: int, scale: int) -> Decimal | None:
    fits = abs(unscaled) < 10**38
    return Decimal(unscaled).scaleb(-scale, _DIGITS) if fits else None
