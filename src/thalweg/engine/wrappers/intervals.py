"""Rows with intervals, as an engine that knows no changelog gives them; told as changes.

Each row is valid over [start, end): +1 at its start, -1 at its end, netted by instant and row. They
come in lots, in any order, and a lot stays until nobody will ask for any of its instants again.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from thalweg.engine.shared.frames import OP, TS, W
from thalweg.plan.windows import FOREVER

START, END = "start", "end"


@dataclass(frozen=True, slots=True)
class _Lot:
    by_start: pl.DataFrame
    starts: np.ndarray
    by_end: pl.DataFrame  # without those that never end
    ends: np.ndarray

    @property
    def last(self) -> int:
        """The last instant at which anything happens."""
        begun = int(self.starts[-1]) if len(self.starts) else -FOREVER
        return max(begun, int(self.ends[-1])) if len(self.ends) else begun


class Intervals:
    """`columns` are those of a row, `begins` the instant before which the result is empty."""

    def __init__(
        self, columns: Mapping[str, pl.DataType], begins: int | None, *, is_stream: bool
    ) -> None:
        self._schema, self._columns = columns, list(columns)
        self._begins, self._is_stream = begins, is_stream
        self._lots: dict[int, _Lot] = {}
        self._lock = threading.Lock()

    def put(self, number: int, rows: pl.DataFrame) -> None:
        """One lot; if it was there, it is replaced."""
        if self._begins is not None:
            rows = rows.with_columns(pl.max_horizontal(START, pl.lit(self._begins)).alias(START))
            rows = rows.filter(pl.col(START) < pl.col(END))
        begun = rows.sort(START)
        ended = rows.filter(pl.col(END) != FOREVER).sort(END)
        lot = _Lot(begun, begun[START].to_numpy(), ended, ended[END].to_numpy())
        with self._lock:
            self._lots[number] = lot

    def forget(self, below: int) -> list[int]:
        """Lots of which nothing is asked any more go; their numbers."""
        with self._lock:
            gone = [n for n, lot in self._lots.items() if lot.last < below]
            for number in gone:
                del self._lots[number]
        return gone

    def changes(self, low: int, upto: int) -> pl.DataFrame:
        """Of the instants [low, upto), in order: `_ts`, `_op`, columns."""
        with self._lock:
            lots = list(self._lots.values())
        parts = [self._empty()]
        for lot in lots:
            parts.append(self._events(lot.by_start, lot.starts, low, upto, START, 1))
            parts.append(self._events(lot.by_end, lot.ends, low, upto, END, -1))
        happened = pl.concat([p for p in parts if p.height] or parts[:1])
        netted = happened.group_by(TS, *self._columns).agg(pl.col(W).sum()).filter(pl.col(W) != 0)
        if self._is_stream:
            netted = netted.filter(pl.col(W) > 0)
        sign = pl.col(W).sign().cast(pl.Int8).alias(OP)
        each = netted.with_columns(sign, pl.col(W).abs()).sort(
            TS, OP, *self._columns, nulls_last=False
        )
        repeated = each.select(pl.exclude(W).repeat_by(W).explode()) if each.height else each
        return repeated.select(TS, OP, *self._columns)

    def _events(
        self, rows: pl.DataFrame, at: np.ndarray, low: int, upto: int, when: str, weight: int
    ) -> pl.DataFrame:
        first, last = np.searchsorted(at, [low, upto], side="left")
        part = rows.slice(int(first), int(last - first))
        return part.select(
            pl.col(when).alias(TS), *self._columns, pl.lit(weight, dtype=pl.Int64).alias(W)
        )

    def _empty(self) -> pl.DataFrame:
        return pl.DataFrame(schema={TS: pl.Int64, **self._schema, W: pl.Int64})
