"""MJoin over SteMs: Δ(A ⋈ B ⋈ C) = ΔA ⋈ B' ⋈ C' ∪ A ⋈ ΔB ⋈ C' ∪ A ⋈ B ⋈ ΔC.

Each input's delta probes the other inputs one after the other; no intermediate result is kept
(DHTJoin 2.1.2, COSMOS ch. 5). A' is A with ΔA: which rows are old and which are new is told by
their start, so a base stream needs no second copy. The order of probing comes with the tick.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from thalweg.engine.shared import physical as ph
from thalweg.engine.shared import tables
from thalweg.engine.shared.expressions import is_true, to_polars
from thalweg.engine.shared.frames import (
    TS,
    E,
    H,
    T,
    W,
    concat,
    empty_relation,
    hash_of,
    name,
    names,
)
from thalweg.engine.shared.kernels.linear import outputs
from thalweg.engine.shared.kernels.source import intervals
from thalweg.engine.shared.segments import Mapped
from thalweg.engine.shared.stems import stem_segments
from thalweg.engine.shared.task import BEGINNING, Flow, Task
from thalweg.plan.expr import TRUE, Expr, columns_of, conjunction, shift


@dataclass(frozen=True)
class Step:
    """Bind one more input: where its SteM is indexed, what probes it, what then can be checked."""

    target: int
    index: tuple[Expr, ...]  # over the target's own columns
    probe: tuple[Expr, ...]  # over all columns; the bound side of the same keys
    checks: tuple[Expr, ...]


def steps(op: ph.Join, start: int, order: list[int]) -> tuple[Step, ...]:
    """The probing plan of one input's delta, in the given order of the other inputs."""
    bound = [start]
    unchecked = list(op.conditions)
    planned = []
    for target in order:
        keys = max((op.shared_keys(b, target) for b in bound), key=len)
        partner = next(b for b in bound if op.shared_keys(b, target) == keys)
        offset = op.offsets[partner]
        bound.append(target)
        ready = [c for c in unchecked if _inputs_of(op, c) <= set(bound)]
        unchecked = [c for c in unchecked if c not in ready]
        planned.append(
            Step(
                target,
                tuple(_member(k, target) for k in keys),
                tuple(shift(_member(k, partner), offset) for k in keys),
                tuple(ready),
            )
        )
    return tuple(planned)


def indexes(op: ph.Join, position: int) -> tuple[tuple[Expr, ...], ...]:
    """Every key by which some probing order may want this input's SteM."""
    others = (i for i in range(len(op.inputs)) if i != position)
    found = (
        tuple(_member(k, position) for k in op.shared_keys(other, position)) for other in others
    )
    return tuple(dict.fromkeys(found))


def _member(key: ph.JoinKey, position: int) -> Expr:
    member = key.member(position)
    assert member is not None
    return member


def _inputs_of(op: ph.Join, condition: Expr) -> set[int]:
    offsets = op.offsets
    return {
        next(i for i in range(len(op.inputs)) if offsets[i] <= c < offsets[i + 1])
        for c in columns_of(condition)
    }


def probing_order(op: ph.Join, start: int, fanout: Mapping[tuple[int, int], float]) -> list[int]:
    """Greedily the connected input that is expected to match least; unknown fan-outs count as 1.

    `fanout` says for (start, target) how many rows came out of probing for each that went in.
    """
    bound, rest, order = [start], [i for i in range(len(op.inputs)) if i != start], []
    while rest:
        connected = [t for t in rest if any(op.shared_keys(b, t) for b in bound)] or rest
        best = min(connected, key=lambda t: (fanout.get((start, t), 1.0), t))
        order.append(best)
        bound.append(best)
        rest.remove(best)
    return order


def join(task: Task, flow: Flow, op: ph.Join) -> pl.DataFrame:
    wanted = op.wanted
    parts = []
    for start in range(len(op.inputs)):
        delta = task.evaluate(flow, op.inputs[start])
        _store(task, flow, op, start, delta)
        if delta.height:
            parts.append(_joined(task, flow, op, start, delta, wanted))
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


def _joined(
    task: Task, flow: Flow, op: ph.Join, start: int, delta: pl.DataFrame, wanted: list[list[int]]
) -> pl.DataFrame:
    plan = steps(op, start, task.order(op, start))
    offset = op.offsets[start]
    data = delta[[name(c) for c in wanted[start]]]
    data.columns = [name(offset + c) for c in wanted[start]]
    rows = _Rows(data, delta[T].to_numpy(), delta[E].to_numpy(), delta[W].to_numpy())
    if not task.is_alone:
        keys = [to_polars(e) for e in plan[0].probe]
        owner = hash_of(keys) if keys else pl.Series(rows.start).hash()
        mine = rows.data.select(owner.is_between(task.low, task.high).alias("_")).to_series()
        rows = rows.where(mine.to_numpy())
    for step in plan:
        if not len(rows):
            break
        before = len(rows)
        rows = _probe(task, flow, op, start, step, rows, wanted[step.target])
        task.saw(op, start, step.target, before, len(rows))
    if not len(rows):
        return empty_relation(op.types)
    times = [pl.Series(T, rows.start), pl.Series(E, rows.end), pl.Series(W, rows.weight)]
    # With the times beside them, outputs that are constants get their height.
    return rows.data.hstack(times).select(*outputs(op.exprs), T, E, W)


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
    hashes = rows.data.select(hash_of([to_polars(e) for e in step.probe])).to_series().to_numpy()
    if len(hashes) != len(rows):
        hashes = np.zeros(len(rows), dtype=np.uint64)  # no key: everything meets everything
    order = np.argsort(hashes)
    hashes = hashes[order]
    is_source = isinstance(target, ph.Source)
    columns = sorted(columns_of(target.predicate) | set(wanted)) if is_source else wanted
    picked = [target.stored_name(c) if is_source else name(c) for c in columns]
    lefts, rights, starts, ends, weights = [], [], [], [], []
    for mapped in _segments(task, flow, op, step, int(rows.start.min()), before):
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
        passing = right.select(is_true(target.predicate).fill_null(False)).to_series()
        if not passing.all():
            kept = passing.to_numpy()
            rows, right = rows.where(kept), right.filter(passing)
    right = right[[name(c) for c in wanted]]
    right.columns = [name(offset + c) for c in wanted]
    joined = _Rows(rows.data.hstack(right), rows.start, rows.end, rows.weight)
    if not step.checks:
        return joined
    holds = joined.data.select(is_true(conjunction(step.checks)).fill_null(False)).to_series()
    return joined if holds.all() else joined.where(holds.to_numpy())


def _segments(
    task: Task, flow: Flow, op: ph.Join, step: Step, earliest: int, before: int
) -> list[Mapped]:
    """The target's stored rows that can overlap what probes them, and its new ones."""
    target = op.inputs[step.target]
    if isinstance(target, ph.Source):
        # A tuple at s is gone by s + length + slide, and is not there before s.
        length = target.window.length
        since = BEGINNING if length is None else earliest - length - target.window.slide
        return stem_segments(task, target.stream, step.index, since, before)
    found = task.stored_between(_table(task, flow, op, target, step.index), earliest + 1, before)
    _, high = task.range_of(flow)
    if before == high:
        fresh = _indexed(task, flow, target, step.index)
        if fresh.frame.height:
            found.append(fresh)
    return found


def _table(task: Task, flow: Flow, op: ph.Join, target: ph.AnyOp, index: tuple[Expr, ...]) -> str:
    """A derived input's SteM, shared by all joins that are evaluated at the same level."""
    return task.state_table(flow, target, f"stem-{task.plan.level_of(op)}-{ph.key_label(index)}")


def _indexed(task: Task, flow: Flow, target: ph.AnyOp, index: tuple[Expr, ...]) -> Mapped:
    """A derived input's delta, all of it, sorted for probing."""

    def make() -> Mapped:
        delta = task.evaluate(flow, target)
        hashed = delta.with_columns(hash_of([to_polars(e) for e in index]).alias(H))
        return Mapped(hashed.sort(H))

    return task.once(("indexed", flow.name, task.plan.name_of(target), index), make)


def _store(task: Task, flow: Flow, op: ph.Join, position: int, delta: pl.DataFrame) -> None:
    """Append a derived input's delta to its SteMs; base streams are stored once, for everybody."""
    target = op.inputs[position]
    if isinstance(target, ph.Source) or not delta.height:
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
