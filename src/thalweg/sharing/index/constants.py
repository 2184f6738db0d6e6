"""The constants of a family of queries that differ in nothing else, and who matches a row.

Every member constrains the same expressions, each in the same manner. Equalities are looked up
together; where there is none, the most selective expression is looked up, and what it finds is
checked against the others.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import accumulate

import numpy as np
import polars as pl

from thalweg.plan.expr import Expr
from thalweg.sharing.index.codes import NULL_CODE, Codes, Ints
from thalweg.sharing.index.stabbing import Between, Ceilings, Floors, Index, Points
from thalweg.sharing.ranges import Range

PAIRS_AT_ONCE = 2_000_000

Coded = Mapping[Expr, Ints]  # of each expression, the codes of all rows


class Manner(Enum):
    """How an expression is constrained."""

    EQUAL = "equality"
    FLOOR = "at least"
    CEILING = "at most"
    BETWEEN = "between"


_KINDS: dict[Manner, Callable[[Ints, Ints, int], Index]] = {
    Manner.EQUAL: Points.of,
    Manner.FLOOR: Floors.of,
    Manner.CEILING: Ceilings.of,
    Manner.BETWEEN: Between.of,
}


def manner_of(range_: Range) -> Manner:
    if range_.is_point:
        return Manner.EQUAL
    if range_.low is not None and range_.high is not None:
        return Manner.BETWEEN
    return Manner.FLOOR if range_.low is not None else Manner.CEILING


@dataclass(frozen=True)
class Column:
    """One expression's constants: member i wants codes low[i] … high[i]."""

    expr: Expr
    manner: Manner
    codes: Codes
    low: Ints
    high: Ints

    @property
    def selectivity(self) -> float:
        """The part of the codes that a member lets through, on average."""
        return float(np.maximum(self.high - self.low + 1, 0).mean()) / self.codes.count

    def holds(self, codes: Ints, members: Ints) -> Ints:
        """Whether each code is in its member's range."""
        return (self.low[members] <= codes) & (codes <= self.high[members])  # type: ignore[return-value]


@dataclass(frozen=True)
class Constants:
    """A family's constants with an index over them; `match` finds who wants which row."""

    count: int  # members
    looked_up: tuple[Column, ...]
    index: Index | None  # None where nothing is constrained: everybody matches
    keys: Ints | None  # several equalities: the combinations that there are, sorted
    checked: tuple[Column, ...]

    @classmethod
    def of(
        cls, ranges: Sequence[Mapping[Expr, Range]], dtypes: Mapping[Expr, pl.DataType]
    ) -> Constants:
        """Of members that constrain the same expressions in the same manner."""
        columns = [_column(e, [r[e] for r in ranges], dtypes[e]) for e in ranges[0]]
        equal = _combinable([c for c in columns if c.manner is Manner.EQUAL])
        if len(equal) > 1:
            keys, places = np.unique(_combined(equal, [c.low for c in equal]), return_inverse=True)
            by_key = Points.of(places, places, len(keys))
            return cls(len(ranges), equal, by_key, keys, _others(columns, equal))
        if not columns:
            return cls(len(ranges), (), None, None, ())
        best = equal[0] if equal else min(columns, key=lambda c: c.selectivity)
        index = _KINDS[best.manner](best.low, best.high, best.codes.count)
        return cls(len(ranges), (best,), index, None, _others(columns, (best,)))

    @property
    def expressions(self) -> tuple[Expr, ...]:
        return tuple(c.expr for c in (*self.looked_up, *self.checked))

    def coded(self, values: Mapping[Expr, pl.Series]) -> Coded:
        """Rows as this family's constants see them."""
        return {c.expr: c.codes.of(values[c.expr]) for c in (*self.looked_up, *self.checked)}

    def candidates(self, codes: Coded, height: int) -> Ints:
        """The rows that somebody may want, in order: what else is to be done is done for them."""
        if self.index is None:
            return np.arange(height)
        return np.flatnonzero(self.index.counts(self._looked_up(codes)))

    def match(self, codes: Coded, height: int) -> Iterator[tuple[Ints, Ints]]:
        """Pairs (row, member) of all rows and the members that want them, some at a time."""
        if self.index is None:
            everyone = np.arange(self.count)
            for rows in _portions(np.full(height, self.count)):
                yield np.repeat(rows, self.count), np.tile(everyone, len(rows))
            return
        wanted = self._looked_up(codes)
        for rows in _portions(self.index.counts(wanted)):
            within, members = self.index.pairs(wanted[rows])
            found = rows[within]
            for column in self.checked:
                holds = column.holds(codes[column.expr][found], members)
                found, members = found[holds], members[holds]
            if len(found):
                yield found, members

    def _looked_up(self, codes: Coded) -> Ints:
        first = self.looked_up[0]
        if self.keys is None:
            return codes[first.expr]
        combined = _combined(self.looked_up, [codes[c.expr] for c in self.looked_up])
        place = np.minimum(np.searchsorted(self.keys, combined), len(self.keys) - 1)
        return np.where(self.keys[place] == combined, place, NULL_CODE)


def _column(expr: Expr, ranges: list[Range], dtype: pl.DataType) -> Column:
    codes = Codes.of_ranges(ranges, dtype)
    return Column(expr, manner_of(ranges[0]), codes, *codes.bounds(ranges))


def _others(columns: list[Column], chosen: tuple[Column, ...]) -> tuple[Column, ...]:
    return tuple(c for c in columns if all(c is not x for x in chosen))


def _combinable(columns: list[Column]) -> tuple[Column, ...]:
    """As many of them as have codes that fit into one number together."""
    sizes = accumulate((c.codes.count for c in columns), operator.mul)
    return tuple(c for c, size in zip(columns, sizes, strict=True) if size < 1 << 62)


def _combined(columns: tuple[Column, ...], codes: list[Ints]) -> Ints:
    """Several codes as one number; NULL in one of them is NULL."""
    number = np.zeros(len(codes[0]), dtype=np.int64)
    known = np.ones(len(codes[0]), dtype=bool)
    for column, part in zip(columns, codes, strict=True):
        known &= part >= 0
        number = number * column.codes.count + part
    return np.where(known, number, NULL_CODE)


def _portions(counts: Ints) -> Iterator[Ints]:
    """Rows in portions of about so many pairs, those without any left out."""
    rows = np.flatnonzero(counts)
    if not len(rows):
        return
    portion = np.cumsum(counts[rows]) // PAIRS_AT_ONCE
    yield from np.split(rows, np.flatnonzero(np.diff(portion)) + 1)
