"""One step of a join: rows under way meet the SteM of one more input, in pieces.

A piece's conditions are checked before the next piece is made, so that memory is bounded by what a
join finds and not by what it looks at. Rows meet by the hash of a key, or, without one, as
`candidates` says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.compile.encoding import key_id
from thalweg.engine.shared.expressions.translate import holds, to_polars
from thalweg.engine.shared.frames import TS, E, H, T, W, name, names
from thalweg.engine.shared.kernels.coalesce import without_retractions
from thalweg.engine.shared.kernels.join.candidates import Candidates, Range, by_time, fewest
from thalweg.engine.shared.kernels.join.probing import Step, indexes
from thalweg.engine.shared.kernels.join.shapes import kept_columns, kept_part
from thalweg.engine.shared.kernels.source import intervals
from thalweg.engine.shared.state import tables
from thalweg.engine.shared.state.hashing import key_hashes, with_hash
from thalweg.engine.shared.state.segments import Mapped
from thalweg.engine.shared.state.stems import stem_segments
from thalweg.engine.shared.tick.plan import Flow
from thalweg.engine.shared.tick.task import Task
from thalweg.plan.expr import TRUE, Expr, columns_of, conjunction
from thalweg.plan.windows import BEGINNING


@dataclass(frozen=True)
class Rows:
    """Rows under way: the columns bound so far (by their place among all), times and weights; where
    it is known, the hash of the key that probes next."""

    data: pl.DataFrame
    start: np.ndarray
    end: np.ndarray
    weight: np.ndarray
    hashes: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.start)

    def where(self, kept: np.ndarray) -> Rows:
        return Rows(
            self.data.filter(pl.Series(kept)),
            self.start[kept],
            self.end[kept],
            self.weight[kept],
            None if self.hashes is None else self.hashes[kept],
        )

    def some(self, most: int) -> Rows:
        """Not more than so many of them, evenly."""
        if len(self) <= most:
            return self
        kept = np.zeros(len(self), dtype=bool)
        kept[np.linspace(0, len(self) - 1, most).astype(np.int64)] = True
        return self.where(kept)

    @staticmethod
    def joined(parts: Sequence[Rows]) -> Rows:
        if len(parts) == 1:
            return parts[0]
        return Rows(
            pl.concat([p.data for p in parts]),
            np.concatenate([p.start for p in parts]),
            np.concatenate([p.end for p in parts]),
            np.concatenate([p.weight for p in parts]),
        )


def probe(
    task: Task, flow: Flow, op: ph.Join, start: int, step: Step, rows: Rows, wanted: list[int]
) -> Iterator[Rows]:
    """The rows under way joined with the target's SteM; few pieces, none of them empty."""
    found: list[Rows] = []
    for piece in _pieces(task, flow, op, start, step, rows, wanted):
        if len(piece):
            found.append(piece)
        if sum(map(len, found)) >= tables.PAIRS_AT_ONCE:
            yield Rows.joined(found)
            found = []
    if found:
        yield Rows.joined(found)


def _pieces(
    task: Task, flow: Flow, op: ph.Join, start: int, step: Step, rows: Rows, wanted: list[int]
) -> Iterator[Rows]:
    low, high = task.range_of(flow)
    before = high if step.sees_new else low  # new rows of earlier inputs had their turn
    if step.kept:
        yield from _with_kept(task, flow, op, step, rows, before)
        return
    target = op.inputs[step.target]
    is_source = isinstance(target, ph.Source)
    since = flow.horizon(target.stream) if isinstance(target, ph.Source) else BEGINNING
    columns = sorted(columns_of(target.predicate) | set(wanted)) if is_source else wanted
    picked = [target.stored_name(c) if is_source else name(c) for c in columns]
    meeting = _Meeting.of(task, op, rows, step)
    pairs = _Pairs(rows, [name(c) for c in columns])
    earliest = int(rows.start.min())
    for mapped in _segments(task, flow, op, step, earliest, before, own=meeting.is_own):
        for left, stored, first, last, weight in meeting.pairs(target, mapped):
            begin = np.maximum(rows.start[left], first)
            end = np.minimum(rows.end[left], last)
            kept = (first < before) & (begin < end)
            if since > BEGINNING:
                kept &= mapped.array(TS)[stored] >= since
            if not kept.all():
                left, stored, begin, end = left[kept], stored[kept], begin[kept], end[kept]
            if not len(left):
                continue
            of = rows.weight[left] if weight is None else rows.weight[left] * weight[kept]
            pairs.add(left, mapped.frame[picked][stored], begin, end, of)
            if pairs.count >= tables.PAIRS_AT_ONCE:
                yield _checked(op, step, *pairs.take(), columns, wanted)
    if pairs.count:
        yield _checked(op, step, *pairs.take(), columns, wanted)


def _with_kept(
    task: Task, flow: Flow, op: ph.Join, step: Step, rows: Rows, before: int
) -> Iterator[Rows]:
    """The same, where several inputs are bound at once: those parts of the join are kept."""
    columns = [name(c) for c in kept_columns(op, step.kept)]
    meeting = _Meeting.of(task, op, rows, step)
    pairs = _Pairs(rows, columns)
    stored_between = task.own_between if meeting.is_own else task.stored_between
    table = task.state_table(flow, op, kept_part(step.kept, step.index))
    for mapped in stored_between(table, int(rows.start.min()) + 1, before):
        for probing, stored in tables.matches(mapped.hashes, meeting.hashes):
            left = probing if meeting.order is None else meeting.order[probing]
            begin = np.maximum(rows.start[left], mapped.array(T)[stored])
            end = np.minimum(rows.end[left], mapped.array(E)[stored])
            kept = begin < end
            if not kept.all():
                left, stored, begin, end = left[kept], stored[kept], begin[kept], end[kept]
            if not len(left):
                continue
            weight = rows.weight[left] * mapped.array(W)[stored]
            pairs.add(left, mapped.frame[columns][stored], begin, end, weight)
            if pairs.count >= tables.PAIRS_AT_ONCE:
                yield _passing(step, *pairs.take())
    if pairs.count:
        yield _passing(step, *pairs.take())


class _Pairs:
    """Those that have met, and are still to be checked."""

    def __init__(self, rows: Rows, columns: list[str]) -> None:
        self._rows, self._columns = rows, columns
        self._parts: list[tuple[np.ndarray, pl.DataFrame, np.ndarray, np.ndarray, np.ndarray]] = []
        self.count = 0

    def add(
        self,
        left: np.ndarray,
        right: pl.DataFrame,
        begin: np.ndarray,
        end: np.ndarray,
        weight: np.ndarray,
    ) -> None:
        self._parts.append((left, right, begin, end, weight))
        self.count += len(left)

    def take(self) -> tuple[Rows, pl.DataFrame]:
        """The bound rows, and beside them what they have met."""
        lefts, rights, begins, ends, weights = zip(*self._parts, strict=True)
        self._parts, self.count = [], 0
        right = rights[0] if len(rights) == 1 else pl.concat(rights)
        right.columns = self._columns
        bound = self._rows.data[np.concatenate(lefts)]
        return Rows(bound, *(np.concatenate(of) for of in (begins, ends, weights))), right


Hits = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]


@dataclass(frozen=True)
class _Meeting:
    """By what rows meet: the hash of the key that probes, or their intervals and a range."""

    rows: Rows
    order: np.ndarray | None  # of the rows by their hashes
    hashes: np.ndarray  # in that order
    is_own: bool  # whether this task owns all hashes, as in a first step
    range: Range | None = None

    @classmethod
    def of(cls, task: Task, op: ph.Join, rows: Rows, step: Step) -> _Meeting:
        if not step.probe:
            nothing = np.empty(0, dtype=np.uint64)
            return cls(rows, None, nothing, is_own=False, range=Range.of(op, step, rows.data))
        hashes = rows.hashes
        if hashes is None:
            hashes = key_hashes(rows.data, [to_polars(e) for e in step.probe])
            order = np.argsort(hashes)
        else:
            order = np.argsort(hashes, kind="stable")  # quick for segments, each of them sorted
        hashes = hashes[order]
        is_own = task.low <= int(hashes[0]) and int(hashes[-1]) <= task.high
        return cls(rows, order, hashes, is_own)

    def pairs(self, target: ph.AnyOp, mapped: Mapped) -> Iterator[Hits]:
        """(bound, stored, stored start, end, weight) of rows that may have met, in pieces."""
        if self.order is not None:
            for probing, stored in tables.matches(mapped.hashes, self.hashes):
                yield self.order[probing], stored, *_times(target, mapped, stored)
            return
        first, last, weight = _times(target, mapped, slice(None))
        choice: Sequence[Candidates] = by_time(first, last, self.rows.start, self.rows.end)
        by_range = None if self.range is None else self.range.candidates(mapped.frame)
        for candidates in choice if by_range is None else fewest(choice, by_range):
            for left, stored in candidates.pairs():
                of = None if weight is None else weight[stored]
                yield left, stored, first[stored], last[stored], of


def _times(
    target: ph.AnyOp, mapped: Mapped, stored: np.ndarray | slice
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """When the stored rows are valid, and their weights (None: all one)."""
    if isinstance(target, ph.Source):
        start, end = intervals(target.window, mapped.array(TS)[stored])
        return start, end, None
    return mapped.array(T)[stored], mapped.array(E)[stored], mapped.array(W)[stored]


def _checked(
    op: ph.Join,
    step: Step,
    rows: Rows,
    right: pl.DataFrame,
    columns: list[int],
    wanted: list[int],
) -> Rows:
    """Append the target's columns, and keep the rows that pass all that can be checked now."""
    target, offset = op.inputs[step.target], op.offsets[step.target]
    if isinstance(target, ph.Source) and target.predicate != TRUE:
        passing = holds(right, target.predicate)
        if not passing.all():
            kept = passing.to_numpy()
            rows, right = rows.where(kept), right.filter(passing)
    right = right[[name(c) for c in wanted]]
    right.columns = [name(offset + c) for c in wanted]
    return _passing(step, rows, right)


def _passing(step: Step, rows: Rows, right: pl.DataFrame) -> Rows:
    joined = Rows(rows.data.hstack(right), rows.start, rows.end, rows.weight)
    if not step.checks:
        return joined
    kept = holds(joined.data, conjunction(step.checks))
    return joined if kept.all() else joined.where(kept.to_numpy())


def _segments(
    task: Task, flow: Flow, op: ph.Join, step: Step, earliest: int, before: int, *, own: bool
) -> list[Mapped]:
    """The target's stored rows that can overlap what probes them, and its new ones."""
    target = op.inputs[step.target]
    if isinstance(target, ph.Source):
        # A tuple at s is gone by s + length + slide, and is not there before s.
        length = target.window.length
        since = BEGINNING if length is None else earliest - length - target.window.slide
        return stem_segments(task, target.stream, step.index, since, before, own=own)
    table = derived_table(task, flow, op, target, step.index)
    found = task.stored_between(table, earliest + 1, before)
    _, high = task.range_of(flow)
    if before == high:
        fresh = _indexed(task, flow, target, step.index)
        if fresh.frame.height:
            found.append(fresh)
    return found


def derived_table(
    task: Task, flow: Flow, op: ph.Join, target: ph.AnyOp, index: tuple[Expr, ...]
) -> str:
    """A derived input's SteM, shared by all joins that are evaluated at the same level."""
    return task.state_table(flow, target, f"stem-{task.plan.level_of(op)}-{key_id(index)}")


def delta_of(task: Task, flow: Flow, target: ph.AnyOp) -> pl.DataFrame:
    """An input's delta. What a tick says and takes back has an end, and meets what it overlaps."""
    delta = task.evaluate(flow, target)
    if isinstance(target, ph.Source) or not delta.height:
        return delta
    _, high = task.range_of(flow)
    key = ("without retractions", flow.name, task.plan.name_of(target))
    return task.once(key, lambda: without_retractions(delta, high))


def _indexed(task: Task, flow: Flow, target: ph.AnyOp, index: tuple[Expr, ...]) -> Mapped:
    """A derived input's delta, all of it, sorted for probing."""

    def make() -> Mapped:
        delta = delta_of(task, flow, target)
        hashed = with_hash(delta, [to_polars(e) for e in index])
        return Mapped(hashed.sort(H))

    return task.once(("indexed", flow.name, task.plan.name_of(target), index), make)


def store(task: Task, flow: Flow, op: ph.Join, position: int) -> None:
    """Append a derived input's delta to its SteMs; base streams are stored once, for everybody."""
    target = op.inputs[position]
    if isinstance(target, ph.Source) or not delta_of(task, flow, target).height:
        return
    low, _ = task.range_of(flow)
    for index in indexes(op, position):
        table = derived_table(task, flow, op, target, index)

        def write(table: str = table, index: tuple[Expr, ...] = index) -> bool:
            frame = _indexed(task, flow, target, index).frame
            mine = frame if task.is_alone else frame.filter(task.owns_hash())
            if mine.height:
                columns = names(len(target.types))
                merge = tables.merge_intervals(columns, low)
                tables.append(task, table, mine, merge, low=T, high=E)
            return True

        task.once(("stored", table), write)
