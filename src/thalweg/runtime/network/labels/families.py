"""Tolerance classes that count by the same keys and the same column: which rows are due, at once.

Of each key and class the row that passed last stands in an array, and how far a value may go from
it. A tick's rows are looked at rank by rank: the first row of every key against all classes, then
the second ones. Only keys of the tick are touched, and of their classes only those that are left by
some value of the tick.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from thalweg.engine.shared.kernels.due_rows import Margins, Numbers, numbers
from thalweg.plan.coherency.tolerance import (
    ChangesSince,
    Deviation,
    RelativeDeviation,
    Tolerance,
)
from thalweg.plan.types import BIGINT, SqlType

NOTHING = -1  # no row has passed
_PLACES = 1 << 21  # that are looked at together: a key and a class
# A missing value, or nothing, is left by every number.
_NEVER: dict[str, tuple[Any, Any]] = {
    "f": (np.inf, -np.inf),
    "i": (np.iinfo(np.int64).max, np.iinfo(np.int64).min),
    "O": (10**80, -(10**80)),
}

Found = tuple[np.ndarray, np.ndarray]  # row, and place among the family's classes


class Keying:
    """Keys by number, in the order in which they came, and how many rows of each."""

    def __init__(self, columns: Sequence[str]) -> None:
        self.columns = tuple(columns)
        self.places: dict[Any, int] = {}
        self.counts = np.zeros(0, dtype=np.int64)

    def place(self, rows: pl.DataFrame) -> np.ndarray:
        """The key of each row."""
        known = self.places
        if not self.columns:
            known.setdefault((), 0)
            return np.zeros(rows.height, dtype=np.int64)
        keys = _as_keys(rows.select(self.columns))
        return np.array([known.setdefault(key, len(known)) for key in keys], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Ranks:
    """Rows by key: the key with the most rows first."""

    key: np.ndarray
    count: np.ndarray
    start: np.ndarray
    order: np.ndarray  # rows, key by key
    number: np.ndarray  # of each row among all that its key has had
    widths: list[int]  # by rank, how many keys have as many rows

    @property
    def width(self) -> int:
        return len(self.key)


def ranked(keying: Keying, rows: pl.DataFrame) -> Ranks:
    """Counts the rows."""
    at = keying.place(rows)
    more = len(keying.places) - len(keying.counts)
    keying.counts = np.concatenate([keying.counts, np.zeros(more, dtype=np.int64)])
    order = np.argsort(at, kind="stable")
    key, first, count = np.unique(at[order], return_index=True, return_counts=True)
    number = np.empty(len(at), dtype=np.int64)
    within = np.arange(len(at)) - np.repeat(first, count)
    number[order] = keying.counts[at[order]] + within
    keying.counts[key] += count
    longest_first = np.argsort(-count, kind="stable")
    count = count[longest_first]
    widths = np.searchsorted(-count, -np.arange(count[0] if len(count) else 0), side="left")
    return Ranks(key[longest_first], count, first[longest_first], order, number, widths.tolist())


class Family:
    def __init__(self, per: tuple[str, ...], column: str | None, type_: SqlType) -> None:
        self.per, self.column, self.type = per, column, type_
        self.classes: list[int] = []
        self.tolerances: list[Tolerance] = []
        dtype: Any = np.float64 if type_.kind.value == "DOUBLE" else np.int64
        self.row = np.empty((0, 0), dtype=np.int64)
        self.low, self.high = np.empty((0, 0), dtype), np.empty((0, 0), dtype)
        self.is_missing = np.empty((0, 0), dtype=bool)

    # --- its classes

    def add(self, classes: Sequence[int], tolerances: Sequence[Tolerance]) -> None:
        """For which nothing has passed."""
        self.classes += classes
        self.tolerances += tolerances
        self._margins = self._as_margins()
        self._resize(self.row.shape[0], len(self.classes))
        if self._margins.needs_products:
            self._be_wide()

    def _as_margins(self) -> Margins:
        if self.column is None:
            counted = [t.updates for t in self.tolerances if isinstance(t, ChangesSince)]
            return Margins([Deviation(n) for n in counted], BIGINT)
        by_value = [t for t in self.tolerances if isinstance(t, Deviation | RelativeDeviation)]
        return Margins(by_value, self.type)

    def keep(self, which: Sequence[int]) -> None:
        """Of the classes only those at these places."""
        self.classes = [self.classes[i] for i in which]
        self.tolerances = [self.tolerances[i] for i in which]
        self._margins = self._as_margins()
        for name in ("row", "low", "high", "is_missing"):
            setattr(self, name, getattr(self, name)[:, list(which)])

    def _resize(self, keys: int, classes: int) -> None:
        low, high = _NEVER[self.low.dtype.kind]
        for name, empty in (("row", NOTHING), ("low", low), ("high", high), ("is_missing", False)):
            old = getattr(self, name)
            made = np.full((keys, classes), empty, dtype=old.dtype)
            made[: old.shape[0], : old.shape[1]] = old
            setattr(self, name, made)

    def make_room(self, keys: int) -> None:
        if keys > self.row.shape[0]:
            self._resize(max(keys, self.row.shape[0] * 3 // 2), len(self.classes))

    def _be_wide(self) -> None:
        """64 bits may be too few."""
        if self.low.dtype == object:
            return
        (low, high), (lowest, highest) = _NEVER["i"], _NEVER["O"]
        for name, never, instead in (("low", low, lowest), ("high", high, highest)):
            wide = getattr(self, name).astype(object)
            wide[wide == never] = instead
            setattr(self, name, wide)

    # --- rows

    def run(self, rows: pl.DataFrame, ranks: Ranks, first: int) -> Found:
        """What is due. Row numbers begin with `first`."""
        found = self._numbers(rows, ranks.number)
        if found.values.dtype == object:
            self._be_wide()
        parts: list[Found] = []
        step = max(1, _PLACES // max(1, len(self.classes)))
        with np.errstate(invalid="ignore", over="ignore"):  # of infinite values
            for at in range(0, ranks.width, step):
                parts += self._keys(found, ranks, slice(at, at + step), first)
        if not parts:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        row, class_ = (np.concatenate(of) for of in zip(*parts, strict=True))
        return row, class_

    def _numbers(self, rows: pl.DataFrame, number: np.ndarray) -> Numbers:
        if self.column is None:
            return Numbers(number, np.zeros(len(number), dtype=bool))
        return numbers(rows[self.column], self.type, is_wide=self._margins.needs_products)

    def _keys(self, found: Numbers, ranks: Ranks, part: slice, first: int) -> list[Found]:
        key, start = ranks.key[part], ranks.start[part]
        widths = [w - part.start for w in ranks.widths if w > part.start]
        widths = [min(w, len(key)) for w in widths]
        in_rank = [ranks.order[start[:w] + rank] for rank, w in enumerate(widths)]
        class_ = self._left(found, key, in_rank)
        if not len(class_):
            return []
        at = np.ix_(key, class_)
        row, low, high, missing = self.row[at], self.low[at], self.high[at], self.is_missing[at]
        any_missing = bool(found.is_missing.any())
        parts: list[Found] = []
        width = len(class_)
        for here in in_rank:
            n, values = len(here), found.values[here]
            due = (values[:, None] > high[:n]) | (values[:, None] < low[:n])
            if due.dtype == object:
                due = due.astype(bool)
            if any_missing:
                is_missing = found.is_missing[here]
                due[is_missing] = ~missing[:n][is_missing]
            flat = np.flatnonzero(due)
            if not len(flat):
                continue
            of, column = np.divmod(flat, width)
            passing, new = here[of], values[of]
            margin = self._margins.around(new, class_[column])
            low[of, column], high[of, column] = self._limits(new, margin)
            row[of, column] = first + passing
            if any_missing:
                gone = found.is_missing[passing]
                missing[of, column] = gone
                never = _NEVER[low.dtype.kind]
                low[of[gone], column[gone]], high[of[gone], column[gone]] = never
            else:
                missing[of, column] = False
            parts.append((passing, class_[column]))
        self.row[at], self.low[at], self.high[at], self.is_missing[at] = row, low, high, missing
        return parts

    def _limits(self, held: np.ndarray, margin: np.ndarray) -> tuple[Any, np.ndarray]:
        if self.column is None:
            return np.iinfo(np.int64).min, held + margin  # rows only become more
        return held - margin, held + margin

    def _left(self, found: Numbers, key: np.ndarray, in_rank: list[np.ndarray]) -> np.ndarray:
        """The classes for which some row of these keys is due, by the least and greatest values."""
        every = np.arange(len(self.classes))
        n = len(key)
        if len(every) < 32 or any(found.is_missing[r].any() for r in in_rank):
            return every
        least, greatest = found.values[in_rank[0]].copy(), found.values[in_rank[0]].copy()
        for here in in_rank[1:]:
            values = found.values[here]
            least[: len(here)] = np.minimum(least[: len(here)], values)
            greatest[: len(here)] = np.maximum(greatest[: len(here)], values)
        assert len(least) == n
        left = (greatest[:, None] > self.high[key]) | (least[:, None] < self.low[key])
        return np.flatnonzero(left.astype(bool).any(axis=0))

    # --- what has passed, from elsewhere

    def restore(self, key: np.ndarray, class_: np.ndarray, row: np.ndarray, values: Any) -> None:
        """What stands at these places: rows, with the column's values or the rows' numbers."""
        found = (
            Numbers(np.asarray(values, dtype=np.int64), np.zeros(len(row), dtype=bool))
            if self.column is None
            else numbers(values, self.type, is_wide=self._margins.needs_products)
        )
        if found.values.dtype == object:
            self._be_wide()
        self.row[key, class_] = row
        with np.errstate(invalid="ignore", over="ignore"):
            margin = self._margins.around(found.values, class_)
            self.low[key, class_], self.high[key, class_] = self._limits(found.values, margin)
        gone = found.is_missing
        self.is_missing[key, class_] = gone
        never = _NEVER[self.low.dtype.kind]
        self.low[key[gone], class_[gone]], self.high[key[gone], class_[gone]] = never

    def numbers_held(self, key: np.ndarray, class_: np.ndarray) -> np.ndarray:
        """Of classes that count rows: the number of the one that passed last."""
        updates = self._margins.around(np.zeros(len(key), dtype=np.int64), class_)
        numbers: np.ndarray = self.high[key, class_] - updates
        return numbers


def _as_keys(columns: pl.DataFrame) -> list[Any]:
    """NaN is a key like any other, though it does not equal itself."""
    has_nan = any(c.dtype.is_float() and c.is_nan().any() for c in columns)
    if not has_nan:
        return columns.rows()
    return [tuple("NaN" if v != v else v for v in row) for row in columns.rows()]
