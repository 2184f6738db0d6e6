"""Joins that begin with the same probe: the pairs are found once, for all of them.

New tuples of S that look for partners in R by some key find the same tuples of R in every join,
whatever else it asks for. Where joins differ in windows, filters and conditions only, the SteM is
probed once in a tick for all of them, by the loosest windows and unfiltered, and each join keeps
the pairs that it wants. This is how CACQ's queries share SteMs and predicates; here all joins'
conditions are computed over all pairs in one go, since with many joins it is the number of calls
that costs, not that of pairs.

Unless there are too many: one join with a long window, or joins that want little of what meets.
What all would find together is therefore weighed against what each finds (`_most_pairs`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
import polars as pl

from thalweg.engine.shared.expressions.translate import is_true, to_polars
from thalweg.engine.shared.frames import FOREVER, TS, H, name
from thalweg.engine.shared.kernels.source import tuples_between
from thalweg.engine.shared.state import tables
from thalweg.engine.shared.state.hashing import with_hash
from thalweg.engine.shared.state.stems import own_between, stem_segments
from thalweg.engine.shared.tick.plan import Flow
from thalweg.engine.shared.tick.task import Task
from thalweg.plan.expr import Expr
from thalweg.plan.windows import BEGINNING, window_end

FAR = 1 << 20  # more columns than an input has: where the columns of the second begin
PROBE = 10.0  # what it costs to let a tuple probe, in conditions that are checked of a pair
CALLS = 1_500_000.0  # and what a join costs that probes by itself, however few its tuples
CHECKED_AT_ONCE = 1 << 25  # conditions of pairs, to bound memory
PAIRS_UPTO = 1 << 22  # pairs that are kept; of more, each join makes its own, in pieces

Length = int | None


@dataclass(frozen=True, slots=True)
class Consumer:
    """What a join asks of the pairs."""

    lengths: tuple[Length, Length]  # of both windows; they do not slide
    filter: Expr  # over the first tuple
    condition: Expr  # over both tuples, the filter included


@dataclass(frozen=True, slots=True)
class ProbeKey:
    """Whose new tuples probe whose tuples, by what: joins of one probe key have the same pairs."""

    instants: int  # the class of flows for which the same ones become final
    first: str
    first_horizon: int
    second: str
    second_horizon: int
    probe: tuple[Expr, ...]  # over the first
    index: tuple[Expr, ...]  # over the second
    sees_new: bool  # whether the second's new tuples are found, too


@dataclass(frozen=True, slots=True)
class SharedProbe:
    """A probe with which several joins begin."""

    probe: ProbeKey
    columns: tuple[tuple[int, ...], tuple[int, ...]]  # that some consumer looks at
    consumers: tuple[Consumer, ...]

    def longest(self, side: int) -> int:
        lengths = [g.lengths[side] for g in self.consumers]
        return FOREVER if None in lengths else max(n for n in lengths if n is not None)


@dataclass(frozen=True)
class Pairs:
    """One consumer's rows of `data`; the first's columns are `c0`, …, the second's far behind."""

    data: pl.DataFrame
    rows: np.ndarray
    start: np.ndarray
    end: np.ndarray
    probed: int  # how many of the first's new tuples pass the consumer's filter


class ProbeResult:
    """All pairs of a tick, and which of them each consumer wants."""

    def __init__(self, shared: SharedProbe, probed: Sequence[int], pairs: _Found) -> None:
        self._shared, self._probed, self._pairs = shared, probed, pairs
        self._held: dict[int, np.ndarray] = {}
        self._timed: dict[tuple[Length, Length], tuple[np.ndarray, ...]] = {}

    def of(self, consumer: int) -> Pairs:
        lasts, start, end = self._times(self._shared.consumers[consumer].lengths)
        rows = (
            np.flatnonzero(lasts & self._holds(consumer)) if len(lasts) else np.empty(0, np.int64)
        )
        return Pairs(self._pairs.data, rows, start[rows], end[rows], self._probed[consumer])

    def _times(self, lengths: tuple[Length, Length]) -> tuple[np.ndarray, ...]:
        """Which pairs are there at all under these windows, from when, and until when."""
        if lengths not in self._timed:
            stamps = (self._pairs.first, self._pairs.second)
            start = np.maximum(*stamps)
            end = np.full(len(start), FOREVER)
            for stamp, length in zip(stamps, lengths, strict=True):
                if length is not None:
                    end = np.minimum(end, window_end(stamp, length, 1))
            self._timed[lengths] = start < end, start, end
        return self._timed[lengths]

    def _holds(self, consumer: int) -> np.ndarray:
        if consumer not in self._held:
            data = self._pairs.data
            portion = max(1, CHECKED_AT_ONCE // max(1, data.height))
            consumers = range(consumer, min(consumer + portion, len(self._shared.consumers)))
            # Beside the data, conditions that are constants get their height.
            checked = data.with_columns(
                is_true(self._shared.consumers[g].condition).fill_null(False).alias(f"_{g}")
                for g in consumers
            )
            self._held = {g: checked[f"_{g}"].to_numpy() for g in consumers}
        return self._held[consumer]


def probe_once(task: Task, flow: Flow, shared: SharedProbe) -> ProbeResult | None:
    """The pairs of this tick; None where joins had better probe each for itself."""
    found: ProbeResult | None = task.once(
        ("probe", shared.probe), lambda: _probe_once(task, flow, shared)
    )
    return found


def _probe_once(task: Task, flow: Flow, shared: SharedProbe) -> ProbeResult | None:
    key, consumers = shared.probe, shared.consumers
    low, high = task.range_of(flow)
    new = _own_new(task, key, max(low, key.first_horizon), high)
    passing = new.select(
        pl.col(TS).filter(is_true(g.filter)).len().alias(f"_{i}") for i, g in enumerate(consumers)
    ).row(0)
    most = _most_pairs(new.height, passing)
    if most < 0:  # to let all tuples probe already costs more
        return None
    before = high if key.sees_new else low
    found = _find(task, shared, new, before, min(most, PAIRS_UPTO))
    return None if found is None else ProbeResult(shared, passing, found)


def _own_new(task: Task, key: ProbeKey, low: int, high: int) -> pl.DataFrame:
    """The first's new tuples that this task owns, with the hash of what they probe by."""
    own = own_between(task, key.first, key.probe, low, high)
    if own is not None:
        return own
    new = tuples_between(task, key.first, low, high)
    if not key.probe:  # everything meets everything, under one hash
        return task.owned(new, [pl.col(TS)]).with_columns(pl.lit(0, dtype=pl.UInt64).alias(H))
    hashed = with_hash(new, [to_polars(e) for e in key.probe])
    return hashed if task.is_alone else hashed.filter(task.owns_hash())


def _most_pairs(new: int, passing: Sequence[int]) -> float:
    """So many pairs cost together what they would cost if each consumer found its own.

    With p pairs of n tuples, all of them are found once and checked for every consumer; else each
    consumer calls for itself, and of its m tuples finds m p / n pairs.
    """
    consumers, wanted = len(passing), sum(passing)
    spared = CALLS * consumers + PROBE * (wanted - new)
    a_pair_more = PROBE + consumers - PROBE * (wanted / new if new else 0.0)
    return spared / a_pair_more if a_pair_more > 0 else inf


@dataclass(frozen=True)
class _Found:
    data: pl.DataFrame
    first: np.ndarray  # timestamps
    second: np.ndarray


def _find(
    task: Task,
    shared: SharedProbe,
    new: pl.DataFrame,
    before: int,
    most: float,
) -> _Found | None:
    """The pairs by the loosest windows of all consumers, among tuples older than `before`; None
    where that would be more than `most`."""
    key = shared.probe
    stamps = new[TS].to_numpy()
    hashes = new[H].to_numpy()
    order = np.argsort(hashes, kind="stable")  # quick for segments, each of them sorted
    hashes, reach = hashes[order], shared.longest(1)
    since = int(stamps.min(initial=before)) - reach if reach < FOREVER else BEGINNING
    mine, theirs = ([_stored_name(task, s, c) for c in of] for s, of in _columns(shared))
    lefts, firsts, seconds, rights = [], [], [], []
    seen = 0
    stored_tuples = stem_segments(task, key.second, key.index, since, before, own=True)
    for mapped in stored_tuples if new.height else ():
        of = mapped.array(TS)
        for probing, stored in tables.matches(mapped.hashes, hashes):
            seen += len(stored)
            if seen > most:
                return None
            left = order[probing]
            first, second = stamps[left], of[stored]
            kept = (second < before) & (second >= key.second_horizon)
            kept &= (first - second <= reach) & (second - first <= shared.longest(0))
            left, stored = left[kept], stored[kept]
            if len(left):
                lefts.append(left)
                firsts.append(first[kept])
                seconds.append(second[kept])
                rights.append(mapped.frame[theirs][stored])
    left = np.concatenate([*lefts, np.empty(0, dtype=np.int64)])
    data = new[mine][left]
    data.columns = [name(c) for c in shared.columns[0]]
    if rights:
        right = pl.concat(rights)
        right.columns = [name(FAR + c) for c in shared.columns[1]]
        data = data.hstack(right)
    nothing = np.empty(0, dtype=np.int64)
    return _Found(data, np.concatenate([*firsts, nothing]), np.concatenate([*seconds, nothing]))


def _columns(shared: SharedProbe) -> tuple[tuple[str, tuple[int, ...]], ...]:
    return (
        (shared.probe.first, shared.columns[0]),
        (shared.probe.second, shared.columns[1]),
    )


def _stored_name(task: Task, stream: str, column: int) -> str:
    """The column behind a stream's own is its stamp."""
    return TS if column == len(task.plan.types[stream]) else name(column)
