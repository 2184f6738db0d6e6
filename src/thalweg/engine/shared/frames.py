"""How relations and streams look as Polars frames inside the engine.

Columns are named by position, `c0`, `c1`, …, beside a few columns of the engine's own:

- a *relation's* delta has `_t` and `_e`, the interval [t, e) over which a row is valid, and `_w`,
  its weight. An interval row of weight w means +w at t and -w at e; a change whose end is not known
  has e = FOREVER, and is taken back by a later row of negative weight.
- a *stream* has `_ts`, the instant, `_pos`, the order among equal instants, and `_w`, how often.
- a *result* has `_ts` and `_op`, +1 or -1; minus comes first within an instant.
- `_h` is the hash of some key columns (`state.hashing`); it decides which task looks at a row, and
  sorts the segments.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import polars as pl

from thalweg.plan.types import Kind, SqlType
from thalweg.plan.windows import FOREVER

T, E, W, TS, POS, H, OP = "_t", "_e", "_w", "_ts", "_pos", "_h", "_op"
MEMBER = "_m"  # the place of a member in its family
INTERVAL_SCHEMA = {T: pl.Int64, E: pl.Int64, W: pl.Int64}
STREAM_SCHEMA = {TS: pl.Int64, POS: pl.Int64, W: pl.Int64}

_DTYPES: dict[Kind, pl.DataType] = {
    Kind.NULL: pl.Boolean(),
    Kind.BOOLEAN: pl.Boolean(),
    Kind.INTEGER: pl.Int32(),
    Kind.BIGINT: pl.Int64(),
    Kind.DOUBLE: pl.Float64(),
    Kind.VARCHAR: pl.String(),
    Kind.DATE: pl.Date(),
    Kind.TIMESTAMP: pl.Datetime("us"),
    Kind.INTERVAL: pl.Int64(),
}

Types = tuple[SqlType, ...]


def dtype(sql: SqlType) -> pl.DataType:
    return pl.Decimal(38, sql.scale) if sql.kind is Kind.DECIMAL else _DTYPES[sql.kind]


def name(index: int) -> str:
    return f"c{index}"


def names(count: int) -> list[str]:
    return [name(i) for i in range(count)]


def data_schema(types: Types) -> dict[str, pl.DataType]:
    return {name(i): dtype(t) for i, t in enumerate(types)}


@lru_cache(maxsize=4096)  # with many queries, making these is a good part of a tick
def empty_relation(types: Types) -> pl.DataFrame:
    return pl.DataFrame(schema={**data_schema(types), **INTERVAL_SCHEMA})


@lru_cache(maxsize=4096)
def empty_stream(types: Types) -> pl.DataFrame:
    return pl.DataFrame(schema={**data_schema(types), **STREAM_SCHEMA})


def concat(frames: list[pl.DataFrame], otherwise: pl.DataFrame) -> pl.DataFrame:
    """All rows in order; `otherwise` gives the schema where there are none."""
    filled = [f for f in frames if f.height]
    if not filled:
        return otherwise.clear() if otherwise.height else otherwise
    return filled[0] if len(filled) == 1 else pl.concat(filled)


def between(frame: pl.DataFrame, low: int, high: int) -> pl.DataFrame:
    """A stream's tuples of [low, high); not copied where that is all of them."""
    stamps = frame[TS].to_numpy()
    inside = (stamps >= low) & (stamps < high)
    return frame if inside.all() else frame.filter(pl.Series(inside))


def aligned(frame: pl.DataFrame, like: pl.DataFrame) -> pl.DataFrame:
    """The frame with just the other's columns; NULL where it has none."""
    missing = [c for c in like.columns if c not in frame.columns]
    if missing:
        frame = frame.with_columns(pl.lit(None, dtype=like.schema[c]).alias(c) for c in missing)
    return frame[like.columns]


def events(frame: pl.DataFrame, upto: int) -> pl.DataFrame:
    """Starts and ends of interval rows as single events at `_t`, those before `upto`."""
    start, end, weight = (frame[c].to_numpy() for c in (T, E, W))
    data = frame[[c for c in frame.columns if c not in (T, E, W)]]
    ending = np.flatnonzero(end < upto)
    if len(ending):
        data = pl.concat([data, data[ending]])
        start = np.concatenate([start, end[ending]])
        weight = np.concatenate([weight, -weight[ending]])
    return data.hstack([pl.Series(T, start), pl.Series(W, weight)])


def net(frame: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """Weights summed over equal rows; what cancels is gone."""
    if not frame.height:
        return frame
    return frame.group_by(by).agg(pl.col(W).sum()).filter(pl.col(W) != 0)


__all__ = [
    "FOREVER",
    "MEMBER",
    "OP",
    "POS",
    "TS",
    "E",
    "H",
    "T",
    "Types",
    "W",
    "between",
    "concat",
    "data_schema",
    "dtype",
    "empty_relation",
    "empty_stream",
    "events",
    "name",
    "names",
    "net",
]
