"""Which stored rows a row can meet where there is no key: by time, or by a range of values.

Sorted by when they begin, the rows that overlap an interval are neighbours; sorted by a value that
a condition compares, those within its bounds are. Both are looked up, and what leaves fewer pairs
is taken; all conditions are checked of these.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.expressions.translate import to_polars
from thalweg.engine.shared.frames import name
from thalweg.engine.shared.kernels.join.probing import Step
from thalweg.engine.shared.state import tables
from thalweg.plan.expr import Call, Expr, columns_of, shift
from thalweg.plan.types import Kind

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}
_SORTED_BY = (Kind.INTEGER, Kind.BIGINT, Kind.DOUBLE, Kind.DATE, Kind.TIMESTAMP)


@dataclass(frozen=True)
class Candidates:
    """Of each probing row, `count` stored ones from `start` on, in the order of `stored`."""

    stored: np.ndarray
    probing: np.ndarray
    start: np.ndarray
    count: np.ndarray

    @classmethod
    def between(cls, stored: np.ndarray, low: np.ndarray, high: np.ndarray) -> Candidates:
        probing = np.flatnonzero(high > low)
        return cls(stored, probing, low[probing], (high - low)[probing])

    def pairs(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for probing, place in tables.pairs(self.probing, self.start, self.count):
            yield probing, self.stored[place]


def fewest(*choices: Sequence[Candidates]) -> Sequence[Candidates]:
    return min(choices, key=lambda choice: sum(int(c.count.sum()) for c in choice))


def by_time(
    first: np.ndarray, last: np.ndarray, start: np.ndarray, end: np.ndarray
) -> list[Candidates]:
    """Stored intervals [first, last) that may overlap [start, end)."""
    found = []
    # By length, in powers of two: beside long ones, short ones would seem to last as long.
    _, size = np.frexp(last.astype(np.float64) - first)
    for length in np.unique(size):
        of = np.flatnonzero(size == length)
        stored = of[np.argsort(first[of], kind="stable")]
        reached = np.maximum.accumulate(last[stored])
        low = np.searchsorted(reached, start, side="right")
        high = np.searchsorted(first[stored], end, side="left")
        found.append(Candidates.between(stored, low, high))
    return found


@dataclass(frozen=True)
class Range:
    """Conditions that bound one value of the target's by values of the rows that probe."""

    value: Expr  # over the target's own columns
    bounds: tuple[tuple[str, np.ndarray, np.ndarray], ...]  # how compared, with what, if known

    @classmethod
    def of(cls, op: ph.Join, step: Step, rows: pl.DataFrame) -> Range | None:
        target, offset = op.inputs[step.target], op.offsets[step.target]
        width = len(target.types)
        stamped = isinstance(target, ph.Source) and target.stamped
        own = range(offset, offset + width - stamped)
        compared: dict[Expr, list[tuple[str, Expr]]] = {}
        for check in step.checks:
            if isinstance(check, Call) and check.function in _MIRRORED:
                (a, b), function = check.args, check.function
                for value, bound, how in ((a, b, function), (b, a, _MIRRORED[function])):
                    inside, outside = columns_of(value), columns_of(bound)
                    if (
                        inside
                        and outside
                        and all(c in own for c in inside)
                        and not any(offset <= c < offset + width for c in outside)
                        and value.type.kind in _SORTED_BY
                    ):
                        compared.setdefault(shift(value, -offset), []).append((how, bound))
        if not compared:
            return None
        value = max(compared, key=lambda v: len(compared[v]))
        bounds = []
        for how, bound in compared[value]:
            of = rows.select(to_polars(bound).alias("_")).to_series().to_physical()
            bounds.append((how, of.fill_null(0).to_numpy(), of.is_not_null().to_numpy()))
        return cls(value, tuple(bounds))

    def candidates(self, stored: pl.DataFrame) -> list[Candidates] | None:
        """None where the value is not stored."""
        if any(name(c) not in stored.columns for c in columns_of(self.value)):
            return None
        values = stored.select(to_polars(self.value).alias("_")).to_series().to_physical()
        known = np.flatnonzero(values.is_not_null().to_numpy())
        numbers = values.fill_null(0).to_numpy()[known]
        order = np.argsort(numbers, kind="stable")
        numbers = numbers[order]
        low = np.zeros(len(self.bounds[0][1]), dtype=np.int64)
        high = np.full(len(low), len(numbers))
        for how, bound, is_known in self.bounds:
            before = np.searchsorted(numbers, bound, side="left")
            upto = np.searchsorted(numbers, bound, side="right")
            if how in (">", ">=", "="):
                low = np.maximum(low, upto if how == ">" else before)
            if how in ("<", "<=", "="):
                high = np.minimum(high, before if how == "<" else upto)
            high = np.where(is_known, high, 0)
        return [Candidates.between(known[order], low, high)]
