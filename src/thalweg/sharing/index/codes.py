"""Values as ranks among constants: comparisons of any type become comparisons of integers.

With the distinct constants p0 < p1 < … of one expression, a value v has the code 2i + 1 if it
equals p_i, and 2i if it lies below p_i and above all before. Open and closed bounds are then plain
integer bounds, and text, decimals and timestamps cost no more than integers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from thalweg.plan.expr import Value
from thalweg.sharing.ranges import Bound, Range

Ints = npt.NDArray[np.int64]
NULL_CODE = -1  # in no range


@dataclass(frozen=True)
class Codes:
    points: pl.Series  # sorted, distinct, without NULL

    @classmethod
    def of_ranges(cls, ranges: Iterable[Range], dtype: pl.DataType) -> Codes:
        bounds = (b for r in ranges for b in (r.low, r.high) if b is not None)
        values = pl.Series([b.value for b in bounds], dtype=dtype, strict=True)
        return cls(values.unique().sort())

    @property
    def count(self) -> int:
        """How many codes there are."""
        return 2 * len(self.points) + 1

    def of(self, values: pl.Series) -> Ints:
        """The code of each value."""
        if not len(self.points):
            return np.where(values.is_null().to_numpy(), NULL_CODE, 0)
        below = self._below(values)
        nearest = self.points.gather(np.minimum(below, len(self.points) - 1))
        codes: Ints = 2 * below + (nearest == values).fill_null(False).to_numpy()
        if values.null_count():
            codes[values.is_null().to_numpy()] = NULL_CODE
        return codes

    def _below(self, values: pl.Series) -> Ints:
        """How many points lie below each value."""
        dtype = values.dtype
        if not (dtype.is_integer() or dtype.is_float()) or values.null_count():
            return self.points.search_sorted(values, side="left").to_numpy().astype(np.int64)
        # Neighbours take the same branches: to sort first is cheaper than to search in any order.
        plain = values.to_numpy()
        order = np.argsort(plain)
        below = np.empty(len(plain), dtype=np.int64)
        below[order] = np.searchsorted(self.points.to_numpy(), plain[order])
        return below

    def bounds(self, ranges: Sequence[Range]) -> tuple[Ints, Ints]:
        """The first and the last code in each range."""
        low = np.zeros(len(ranges), dtype=np.int64)
        high = np.full(len(ranges), self.count - 1, dtype=np.int64)
        lows = [(i, r.low) for i, r in enumerate(ranges) if r.low is not None]
        highs = [(i, r.high) for i, r in enumerate(ranges) if r.high is not None]
        if lows:
            low[[i for i, _ in lows]] = self._places(lows) + [not b.closed for _, b in lows]
        if highs:
            high[[i for i, _ in highs]] = self._places(highs) - [not b.closed for _, b in highs]
        return low, high

    def _places(self, bounds: Sequence[tuple[int, Bound]]) -> Ints:
        values: list[Value] = [b.value for _, b in bounds]
        return self.of(pl.Series(values, dtype=self.points.dtype, strict=True))
