"""A representative's interval rows and what a profile makes of them, by brute force.

The independent opinion on profiles: rows are found by trying all combinations of tuples, and every
expression is evaluated by the reference. A column that the representative does not keep can't be
read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from thalweg.engine.arrivals import Arrival, Row
from thalweg.engine.changelog import Change, net
from thalweg.engine.reference.expressions import evaluate, holds
from thalweg.plan.windows import FOREVER, TimeWindow
from thalweg.sharing.plans import conditions_of
from thalweg.sharing.profile import Profile
from thalweg.sharing.representative import Representative


class IntervalRow(NamedTuple):
    timestamps: tuple[int, ...]  # of each source
    kept: Mapping[int, Any]  # by column of the core


class Kept(tuple[Any, ...]):
    """A row of the core's columns of which only some were kept."""

    columns: Mapping[int, Any]

    def __new__(cls, columns: Mapping[int, Any]) -> Kept:
        row = super().__new__(cls)
        row.columns = columns
        return row

    def __getitem__(self, index: Any) -> Any:
        return self.columns[index]


def valid(windows: Sequence[TimeWindow], timestamps: Sequence[int]) -> tuple[int, int]:
    """The intersection of the sources' intervals (COSMOS, lemma 3.1)."""
    intervals = [w.interval(t) for w, t in zip(windows, timestamps, strict=True)]
    return max(start for start, _ in intervals), min(end for _, end in intervals)


def interval_rows(
    rep: Representative, inputs: Mapping[str, Sequence[Arrival]]
) -> list[IntervalRow]:
    conditions = conditions_of(rep.to_core())
    found = []
    for tuples in product(*(inputs[s.name] for s in rep.streams)):
        row = tuple(v for t in tuples for v in t.row)
        timestamps = tuple(t.timestamp for t in tuples)
        start, end = valid(rep.windows, timestamps)
        if start < end and all(holds(c, row) for c in conditions):
            found.append(IntervalRow(timestamps, {i: row[i] for i in rep.attributes}))
    return found


def profiled(profile: Profile, rows: Iterable[IntervalRow]) -> list[Change]:
    """Filter, recompute the interval for the member's own windows, project, net."""
    intervals: list[tuple[int, int, Row]] = []
    for timestamps, columns in rows:
        row = Kept(columns)
        if not all(holds(c, row) for c in profile.conditions):
            continue
        start, end = valid(profile.windows, timestamps)
        assert profile.interval(timestamps) == (start, end)
        if start < end:
            intervals.append((start, end, tuple(evaluate(e, row) for e in profile.outputs)))
    return netted(intervals)


def netted(intervals: Sequence[tuple[int, int, Row]]) -> list[Change]:
    changes: list[Change] = []
    before: Counter[Row] = Counter()
    for now in sorted({t for start, end, _ in intervals for t in (start, end)} - {FOREVER}):
        after = Counter(row for start, end, row in intervals if start <= now < end)
        changes += net(now, before, after)
        before = after
    return changes
