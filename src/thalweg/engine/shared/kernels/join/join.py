"""MJoin over SteMs: Δ(A ⋈ B ⋈ C) = ΔA ⋈ B' ⋈ C' ∪ A ⋈ ΔB ⋈ C' ∪ A ⋈ B ⋈ ΔC.

Each input's delta probes the other inputs one after the other; no intermediate result is kept
(DHTJoin 2.1.2, COSMOS ch. 5). A' is A with ΔA: which rows are old and which are new is told by
their start, so a base stream needs no second copy. The order of probing comes with the tick.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.compile.encoding import key_id
from thalweg.engine.shared.expressions.translate import holds, to_polars
from thalweg.engine.shared.frames import (
    TS,
    E,
    H,
    T,
    W,
    concat,
    empty_relation,
    name,
    names,
)
from thalweg.engine.shared.kernels.join.prefixes import Prefix, Route, routes_in
from thalweg.engine.shared.kernels.join.probing import Step, indexes
from thalweg.engine.shared.kernels.join.shared_probe import FAR, probe_once
from thalweg.engine.shared.kernels.linear import outputs
from thalweg.engine.shared.kernels.source import intervals
from thalweg.engine.shared.state import tables
from thalweg.engine.shared.state.hashing import hash_columns, key_hashes, with_hash
from thalweg.engine.shared.state.segments import Mapped
from thalweg.engine.shared.state.stems import stem_segments
from thalweg.engine.shared.tick.plan import Flow
from thalweg.engine.shared.tick.task import Task
from thalweg.plan.expr import TRUE, Expr, columns_of, conjunction
from thalweg.plan.windows import BEGINNING


def join(task: Task, flow: Flow, op: ph.Join) -> pl.DataFrame:
    parts = []
    for start in range(len(op.inputs)):
        _store(task, flow, op, start)
        parts.append(_joined(task, flow, op, start))
    return concat(parts, empty_relation(op.types))


@dataclass(frozen=True)
class _Rows:
    """Rows under way: the columns bound so far (by their place among all), times and weights."""

    data: pl.DataFrame
    start: np.ndarray
    end: np.ndarray
    weight: np.ndarray

    def __len__(self) -> int:
        return len(self.start)

    def where(self, kept: np.ndarray) -> _Rows:
        return _Rows(
            self.data.filter(pl.Series(kept)), self.start[kept], self.end[kept], self.weight[kept]
        )


def _joined(task: Task, flow: Flow, op: ph.Join, start: int) -> pl.DataFrame:
    routes = task.once("routes", lambda: routes_in(task))
    route = routes[flow.name, task.plan.name_of(op), start]
    way = _Way(task, flow, op, start, route)
    rows, counts = way.rows(len(route.steps), op.wanted, route.prefixes)
    for step, (probed, matched) in zip(route.steps, counts, strict=True):
        if probed:
            task.record(op, start, step.target, probed, matched)
    if not len(rows):
        return empty_relation(op.types)
    times = [pl.Series(T, rows.start), pl.Series(E, rows.end), pl.Series(W, rows.weight)]
    # With the times beside them, outputs that are constants get their height.
    return rows.data.hstack(times).select(*outputs(op.exprs), T, E, W)


Counts = list[tuple[int, int]]  # rows that probed and rows that matched, step by step


@dataclass(frozen=True)
class _Way:
    """One input's delta on its way through the others."""

    task: Task
    flow: Flow
    op: ph.Join
    start: int
    route: Route

    @property
    def steps(self) -> tuple[Step, ...]:
        return self.route.steps

    def rows(
        self, length: int, wanted: list[list[int]], prefixes: Sequence[Prefix]
    ) -> tuple[_Rows, Counts]:
        """After so many steps, with the wanted columns of each input that is bound then."""
        if prefixes:
            *shorter, longest = prefixes
            key = ("prefix", longest.key)
            shared, so_far = self.task.once(key, lambda: self._shared(longest, shorter))
            rows, counts = self._mine(shared, longest.length, wanted), list(so_far)
        else:
            rows, counts = self._met(wanted) or (self._begin(wanted[self.start]), [])
        for step in self.steps[len(counts) : length]:
            before = len(rows)
            if before:
                of = wanted[step.target]
                rows = _probe(self.task, self.flow, self.op, self.start, step, rows, of)
            counts.append((before, len(rows)))
        return rows, counts

    def _met(self, wanted: list[list[int]]) -> tuple[_Rows, Counts] | None:
        """The rows after the first step, where many joins begin with it together."""
        if self.route.shared is None:
            return None
        found = probe_once(self.task, self.flow, self.route.shared)
        if found is None:
            return None
        pairs = found.of(self.route.consumer)
        counts = [(pairs.probed, len(pairs.rows))]
        weight = np.ones(len(pairs.rows), dtype=np.int64)
        if not len(pairs.rows):
            return _Rows(pairs.data.clear(), pairs.start, pairs.end, weight), counts
        named = {name(i * FAR + c): name(o + c) for i, o, c in self._columns(1, wanted)}
        data = pairs.data[list(named)][pairs.rows]
        data.columns = list(named.values())
        return _Rows(data, pairs.start, pairs.end, weight), counts

    def _begin(self, wanted: list[int]) -> _Rows:
        delta = self.task.evaluate(self.flow, self.op.inputs[self.start])
        data = delta[[name(c) for c in wanted]]
        data.columns = [name(self.op.offsets[self.start] + c) for c in wanted]
        rows = _Rows(data, delta[T].to_numpy(), delta[E].to_numpy(), delta[W].to_numpy())
        if self.task.is_alone:
            return rows
        keys = [to_polars(e) for e in self.steps[0].probe]
        owner = key_hashes(data, keys) if keys else hash_columns([delta[T]])
        return rows.where((owner >= self.task.low) & (owner <= self.task.high))

    # --- rows that several joins have in common: columns are named by the order of binding

    def _shared(self, prefix: Prefix, shorter: Sequence[Prefix]) -> tuple[_Rows, Counts]:
        wanted = [list[int]() for _ in self.op.inputs]
        for position, columns in zip(self._bound(prefix.length), prefix.columns, strict=True):
            wanted[position] = list(columns)
        rows, counts = self.rows(prefix.length, wanted, shorter)
        named = {name(o + c): f"{i}.{c}" for i, o, c in self._columns(prefix.length, wanted)}
        return replace(rows, data=rows.data.rename(named) if len(rows) else rows.data), counts

    def _mine(self, rows: _Rows, length: int, wanted: list[list[int]]) -> _Rows:
        if not len(rows):
            return rows
        named = {f"{i}.{c}": name(o + c) for i, o, c in self._columns(length, wanted)}
        return replace(rows, data=rows.data[list(named)].rename(named))

    def _bound(self, length: int) -> list[int]:
        return [self.start, *(s.target for s in self.steps[:length])]

    def _columns(self, length: int, wanted: list[list[int]]) -> Iterator[tuple[int, int, int]]:
        """(when its input is bound, where its input begins, its place there) of every column."""
        for i, position in enumerate(self._bound(length)):
            yield from ((i, self.op.offsets[position], c) for c in wanted[position])


def _probe(
    task: Task,
    flow: Flow,
    op: ph.Join,
    start: int,
    step: Step,
    rows: _Rows,
    wanted: list[int],
) -> _Rows:
    """Join the rows under way with the target's SteM."""
    low, high = task.range_of(flow)
    before = high if step.target > start else low  # new rows of earlier inputs had their turn
    target = op.inputs[step.target]
    since = flow.horizon(target.stream) if isinstance(target, ph.Source) else BEGINNING
    hashes = np.zeros(len(rows), dtype=np.uint64)  # without a key everything meets everything
    if step.probe:
        hashes = key_hashes(rows.data, [to_polars(e) for e in step.probe])
    order = np.argsort(hashes)
    hashes = hashes[order]
    is_source = isinstance(target, ph.Source)
    columns = sorted(columns_of(target.predicate) | set(wanted)) if is_source else wanted
    picked = [target.stored_name(c) if is_source else name(c) for c in columns]
    lefts, rights, starts, ends, weights = [], [], [], [], []
    own = task.low <= int(hashes[0]) and int(hashes[-1]) <= task.high  # as in a first step
    for mapped in _segments(task, flow, op, step, int(rows.start.min()), before, own=own):
        for probing, stored in tables.matches(mapped.hashes, hashes):
            left = order[probing]
            first, last, weight = _times(target, mapped, stored)
            begin = np.maximum(rows.start[left], first)
            end = np.minimum(rows.end[left], last)
            kept = (first < before) & (begin < end)
            if since > BEGINNING:
                kept &= mapped.array(TS)[stored] >= since
            if not kept.all():
                left, stored, begin, end = left[kept], stored[kept], begin[kept], end[kept]
            if not len(left):
                continue
            lefts.append(left)
            rights.append(mapped.frame[picked][stored])
            starts.append(begin)
            ends.append(end)
            weights.append(
                rows.weight[left] if weight is None else (rows.weight[left] * weight[kept])
            )
    if not lefts:
        return _Rows(rows.data.clear(), *(np.empty(0, dtype=np.int64) for _ in range(3)))
    right = rights[0] if len(rights) == 1 else pl.concat(rights)
    right.columns = [name(c) for c in columns]
    bound = rows.data[np.concatenate(lefts)]
    result = _Rows(bound, np.concatenate(starts), np.concatenate(ends), np.concatenate(weights))
    return _checked(op, step, result, right, columns, wanted)


def _times(
    target: ph.AnyOp, mapped: Mapped, stored: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """When the stored rows are valid, and their weights (None: all one)."""
    if isinstance(target, ph.Source):
        start, end = intervals(target.window, mapped.array(TS)[stored])
        return start, end, None
    return mapped.array(T)[stored], mapped.array(E)[stored], mapped.array(W)[stored]


def _checked(
    op: ph.Join,
    step: Step,
    rows: _Rows,
    right: pl.DataFrame,
    columns: list[int],
    wanted: list[int],
) -> _Rows:
    """Append the target's columns, and keep the rows that pass all that can be checked now."""
    target, offset = op.inputs[step.target], op.offsets[step.target]
    if isinstance(target, ph.Source) and target.predicate != TRUE:
        passing = holds(right, target.predicate)
        if not passing.all():
            kept = passing.to_numpy()
            rows, right = rows.where(kept), right.filter(passing)
    right = right[[name(c) for c in wanted]]
    right.columns = [name(offset + c) for c in wanted]
    joined = _Rows(rows.data.hstack(right), rows.start, rows.end, rows.weight)
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
    found = task.stored_between(_table(task, flow, op, target, step.index), earliest + 1, before)
    _, high = task.range_of(flow)
    if before == high:
        fresh = _indexed(task, flow, target, step.index)
        if fresh.frame.height:
            found.append(fresh)
    return found


def _table(task: Task, flow: Flow, op: ph.Join, target: ph.AnyOp, index: tuple[Expr, ...]) -> str:
    """A derived input's SteM, shared by all joins that are evaluated at the same level."""
    return task.state_table(flow, target, f"stem-{task.plan.level_of(op)}-{key_id(index)}")


def _indexed(task: Task, flow: Flow, target: ph.AnyOp, index: tuple[Expr, ...]) -> Mapped:
    """A derived input's delta, all of it, sorted for probing."""

    def make() -> Mapped:
        delta = task.evaluate(flow, target)
        hashed = with_hash(delta, [to_polars(e) for e in index])
        return Mapped(hashed.sort(H))

    return task.once(("indexed", flow.name, task.plan.name_of(target), index), make)


def _store(task: Task, flow: Flow, op: ph.Join, position: int) -> None:
    """Append a derived input's delta to its SteMs; base streams are stored once, for everybody."""
    target = op.inputs[position]
    if isinstance(target, ph.Source) or not task.evaluate(flow, target).height:
        return
    low, _ = task.range_of(flow)
    for index in indexes(op, position):
        table = _table(task, flow, op, target, index)

        def write(table: str = table, index: tuple[Expr, ...] = index) -> bool:
            frame = _indexed(task, flow, target, index).frame
            mine = frame if task.is_alone else frame.filter(task.owns_hash())
            if mine.height:
                columns = names(len(target.types))
                merge = tables.merge_intervals(columns, low)
                tables.append(task, table, mine, merge, low=T, high=E)
            return True

        task.once(("stored", table), write)
