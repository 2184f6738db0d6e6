"""Which rows are due for which tolerance classes, over columns: the arithmetic of `tolerances`.

Rows lie in order, key by key. The classes of a column are looked at together: where there are many
places (a key and a class), rank by rank, all keys' first rows, then all second ones; where there
are few, each place by itself, row by row.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl

from thalweg.plan.coherency.tolerance import Deviation, RelativeDeviation
from thalweg.plan.types import DOUBLE, SqlType

NONE, STORED = -1, -2  # instead of a row: nothing is held, or what was stored is
FEW = 64  # places for which Python is quicker than numpy
_SMALL = 1 << 61  # sums of two such numbers fit into 64 bits


@dataclass(frozen=True, slots=True)
class Keys:
    """Rows by key: `start` and `count` of each one's."""

    start: np.ndarray
    count: np.ndarray

    @property
    def longest(self) -> int:
        return int(self.count.max(initial=0))


@dataclass(frozen=True, slots=True)
class Numbers:
    """A column's values as numbers to compare: floats, or integers at the column's scale."""

    values: np.ndarray
    is_missing: np.ndarray  # NULL and NaN differ from every number, and not from each other

    def __getitem__(self, rows: Any) -> Numbers:
        return Numbers(self.values[rows], self.is_missing[rows])


def numbers(column: pl.Series, type_: SqlType, *, is_wide: bool) -> Numbers:
    """`is_wide`: products of them are needed, for which 64 bits may be too few."""
    missing = column.is_null()
    if type_ == DOUBLE:
        missing |= column.is_nan().fill_null(True)
        return Numbers(column.fill_null(0.0).to_numpy(), missing.to_numpy())
    whole = column.to_physical() if column.dtype.is_decimal() else column.cast(pl.Int64)
    whole = whole.fill_null(0)
    largest = max(abs(whole.min() or 0), abs(whole.max() or 0))  # type: ignore[arg-type, type-var]
    if is_wide or largest >= _SMALL:
        values = np.array([*whole.to_list(), None], dtype=object)[:-1]
    else:
        values = whole.cast(pl.Int64).to_numpy()
    return Numbers(values, missing.to_numpy())


class Margins:
    """How far from a held value the values of each class may be; exactly, but for DOUBLE."""

    def __init__(self, tolerances: Sequence[Deviation | RelativeDeviation], type_: SqlType) -> None:
        self._is_double = type_ == DOUBLE
        self._is_share = np.array([isinstance(t, RelativeDeviation) for t in tolerances])
        amounts = [t.amount if isinstance(t, Deviation) else Decimal(0) for t in tolerances]
        shares = [t.share if isinstance(t, RelativeDeviation) else Decimal(0) for t in tolerances]
        if self._is_double:
            self._amount = np.array([float(a) for a in amounts])
            self._share = np.array([float(s) for s in shares])
            return
        # Differences are whole numbers at the column's scale: what is beyond a margin is beyond
        # the whole number below it.
        unit = 10**type_.scale
        whole = [int(a * unit) for a in amounts]
        fits = all(w < 2 * _SMALL for w in whole) and not self._is_share.any()
        self._amount = np.array(whole, dtype=np.int64 if fits else object)
        ratios = [s.as_integer_ratio() for s in shares]
        self._over = np.array([n for n, _ in ratios], dtype=object)
        self._under = np.array([d for _, d in ratios], dtype=object)

    @property
    def needs_products(self) -> bool:
        return not self._is_double and (bool(self._is_share.any()) or self._amount.dtype == object)

    def around(self, held: np.ndarray, classes: Any) -> np.ndarray:
        """Of held values, one for each of these classes."""
        amount = self._amount[classes]
        if not self._is_share.any():
            return amount
        if self._is_double:
            share = np.abs(held) * self._share[classes]
        else:
            share = np.abs(held) * self._over[classes] // self._under[classes]
        return np.where(self._is_share[classes], share, amount)


@dataclass(slots=True)
class Held:
    """By key and class: the row that passed last (or NONE, or STORED), and its value."""

    row: np.ndarray
    value: np.ndarray
    is_missing: np.ndarray


Due = tuple[np.ndarray, np.ndarray, np.ndarray]  # key, class, row


def deviating(keys: Keys, found: Numbers, margins: Margins, held: Held) -> Due:
    """The rows that pass; `held` becomes what is held afterwards."""
    if held.row.size < FEW:
        return _one_by_one(keys, found, margins, held)
    return _by_rank(keys, found, margins, held)


def _by_rank(keys: Keys, found: Numbers, margins: Margins, held: Held) -> Due:
    every = np.arange(held.row.shape[1])
    margin = margins.around(held.value, every[None, :])
    low, high = held.value - margin, held.value + margin
    parts: list[Due] = []
    for rank in range(keys.longest):
        key = np.flatnonzero(keys.count > rank)
        row = keys.start[key] + rank
        value, missing = found.values[row][:, None], found.is_missing[row][:, None]
        old = held.is_missing[key]
        off = (value > high[key]) | (value < low[key])
        due = (held.row[key] == NONE) | (missing != old) | (off.astype(bool) & ~missing & ~old)
        at, class_ = np.nonzero(due)
        of, new = key[at], found.values[row[at]]
        margin = margins.around(new, class_)
        low[of, class_], high[of, class_] = new - margin, new + margin
        held.row[of, class_], held.value[of, class_] = row[at], new
        held.is_missing[of, class_] = found.is_missing[row[at]]
        parts.append((of, class_, row[at]))
    return _together(parts)


def _one_by_one(keys: Keys, found: Numbers, margins: Margins, held: Held) -> Due:
    parts: list[Due] = []
    for key, (start, count) in enumerate(zip(keys.start, keys.count, strict=True)):
        values = found.values[start : start + count].tolist()
        missing = found.is_missing[start : start + count].tolist()
        for class_ in range(held.row.shape[1]):
            rows = _of_place(values, missing, margins, held, key, class_)
            if rows:
                last = rows[-1]
                held.row[key, class_], held.value[key, class_] = start + last, values[last]
                held.is_missing[key, class_] = missing[last]
                size = len(rows)
                parts.append((np.full(size, key), np.full(size, class_), start + np.array(rows)))
    return _together(parts)


def _of_place(
    values: list[Any], missing: list[bool], margins: Margins, held: Held, key: int, class_: int
) -> list[int]:
    place = np.array([class_])

    def bounds(value: Any) -> tuple[Any, Any]:
        margin = margins.around(np.array([value], dtype=held.value.dtype), place).tolist()[0]
        return value - margin, value + margin

    is_none, was_missing = bool(held.row[key, class_] == NONE), bool(held.is_missing[key, class_])
    low, high = bounds(
        held.value[key, class_].item() if held.value.dtype != object else held.value[key, class_]
    )
    found = []
    for row, (value, is_missing) in enumerate(zip(values, missing, strict=True)):
        if (
            is_none
            or is_missing != was_missing
            or (not is_missing and (value > high or value < low))
        ):
            found.append(row)
            is_none, was_missing = False, is_missing
            low, high = bounds(value)
    return found


def _together(parts: list[Due]) -> Due:
    if not parts:
        none = np.empty(0, dtype=np.int64)
        return none, none, none
    key, class_, row = (np.concatenate(of) for of in zip(*parts, strict=True))
    return key, class_, row


def counted(keys: Keys, behind: np.ndarray, updates: int) -> tuple[Due, np.ndarray]:
    """Of one class: every so many rows one passes. `behind` is how many rows came since the last
    one that passed, -1: none did; afterwards as before."""
    period = updates + 1
    first = np.where(behind < 0, 0, updates - behind)  # the rank of the next one that passes
    key = np.repeat(np.arange(len(keys.start)), keys.count)
    rank = np.arange(len(key)) - np.repeat(np.cumsum(keys.count) - keys.count, keys.count)
    ahead = rank - first[key]
    due = np.flatnonzero((ahead >= 0) & (ahead % period == 0))
    passes = keys.count > first
    after = np.where(passes, (keys.count - 1 - first) % period, behind + keys.count)
    row = keys.start[key[due]] + rank[due]
    return (key[due], np.zeros(len(due), dtype=np.int64), row), after


def aged(
    instants: list[int], age: int, upto: int, due: int | None, has_held: bool
) -> tuple[list[tuple[int, int]], int | None]:
    """Of one key: at which instants below `upto` which row passes (-1: the one that waits), and
    when the next one is due. `due` is when the newest of those that wait is."""
    found: list[tuple[int, int]] = []
    at = 0
    if not has_held and instants:
        found.append((instants[0], 0))
        at = 1
    while True:
        if due is None:
            if at == len(instants):
                return found, None
            due = instants[at] + age
        if due >= upto:
            return found, due
        at = max(at, bisect_left(instants, due))
        found.append((due, at - 1))
        due = None
