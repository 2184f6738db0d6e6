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
from thalweg.engine.shared.kernels.source import interval
from thalweg.engine.shared.segments import Mapped
from thalweg.engine.shared.stems import stem_segments
from thalweg.engine.shared.task import BEGINNING, Flow, Task
from thalweg.plan.expr import TRUE, Expr, columns_of, shift

PAIRS_AT_ONCE = 1 << 21  # a probe that matches more is done in pieces, to bound memory


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
    wanted = _wanted(op)
    parts = []
    for start in range(len(op.inputs)):
        delta = task.evaluate(flow, op.inputs[start])
        _store(task, flow, op, start, delta)
        if delta.height:
            parts.append(_joined(task, flow, op, start, delta, wanted))
    return concat(parts, empty_relation(op.types))


def _wanted(op: ph.Join) -> list[list[int]]:
    """For each input, the columns of its own that anybody looks at."""
    used: set[int] = set()
    for e in (*op.conditions, *op.exprs):
        used |= columns_of(e)
    offsets = op.offsets
    wanted = [
        {c - offsets[i] for c in used if offsets[i] <= c < offsets[i + 1]}
        for i in range(len(op.inputs))
    ]
    for key in op.keys:
        for i, e in key.members:
            wanted[i] |= columns_of(e)
    return [sorted(w) for w in wanted]


def _joined(
    task: Task, flow: Flow, op: ph.Join, start: int, delta: pl.DataFrame, wanted: list[list[int]]
) -> pl.DataFrame:
    order = task.order(op, start)
    plan = steps(op, start, order)
    offset = op.offsets[start]
    current = delta.select(
        *(pl.col(name(c)).alias(name(offset + c)) for c in wanted[start]), T, E, W
    )
    first = [to_polars(e) for e in plan[0].probe]
    current = task.owned(current, first or [pl.struct(pl.all())])
    for step in plan:
        if not current.height:
            break
        before = current.height
        current = _probe(task, flow, op, start, step, current, wanted[step.target])
        task.saw(op, start, step.target, before, current.height)
    if not current.height:
        return empty_relation(op.types)
    return current.select(*outputs(op.exprs), T, E, W)


def _probe(
    task: Task,
    flow: Flow,
    op: ph.Join,
    start: int,
    step: Step,
    current: pl.DataFrame,
    wanted: list[int],
) -> pl.DataFrame:
    """Join the current rows with the target's SteM."""
    low, high = task.range_of(flow)
    before = high if step.target > start else low  # new rows of earlier inputs had their turn
    current = current.with_columns(hash_of([to_polars(e) for e in step.probe]).alias(H)).sort(H)
    hashes = current[H].to_numpy()
    current = current.drop(H)
    target = op.inputs[step.target]
    since = flow.horizon(target.stream) if isinstance(target, ph.Source) else BEGINNING
    side = _Side(target, op.offsets[step.target], wanted, before, since)
    earliest = int(current[T].min())  # type: ignore[arg-type]
    parts = []
    for mapped in _segments(task, flow, op, step, earliest, before):
        probing, stored = tables.matches(mapped.hashes, hashes)
        for piece in range(0, len(probing), PAIRS_AT_ONCE):
            here = slice(piece, piece + PAIRS_AT_ONCE)
            parts.append(side.paired(current, probing[here], mapped, stored[here], step.checks))
    filled = [p for p in parts if p.height]
    return pl.concat(filled) if filled else current.clear()


@dataclass(frozen=True)
class _Side:
    """The probed input: how its stored rows become interval rows beside the current ones."""

    op: ph.AnyOp
    offset: int
    wanted: list[int]
    before: int
    since: int

    def paired(
        self,
        current: pl.DataFrame,
        probing: np.ndarray,
        mapped: Mapped,
        stored: np.ndarray,
        checks: tuple[Expr, ...],
    ) -> pl.DataFrame:
        columns = [name(c) for c in self.wanted]
        if isinstance(self.op, ph.Source):
            needed = sorted(columns_of(self.op.predicate) | set(self.wanted))
            found = mapped.frame.select(*(name(c) for c in needed), TS)[stored]
            begin, end = interval(self.op.window)
            fits = begin < self.before
            if self.since > BEGINNING:
                fits &= pl.col(TS) >= self.since
            if self.op.predicate != TRUE:
                fits &= is_true(self.op.predicate)
            found = found.with_columns(begin.alias("_t2"), end.alias("_e2"), fits.alias("_fits"))
            weight: list[pl.Expr] = []
        else:
            found = mapped.frame.select(*columns, T, E, W)[stored].rename(
                {T: "_t2", E: "_e2", W: "_w2"}
            )
            found = found.with_columns((pl.col("_t2") < self.before).alias("_fits"))
            weight = [(pl.col(W) * pl.col("_w2")).alias(W)]
            columns.append("_w2")
        renamed = found.select(
            *(pl.col(name(c)).alias(name(self.offset + c)) for c in self.wanted),
            *(["_w2"] if weight else []),
            "_t2",
            "_e2",
            "_fits",
        )
        both = pl.concat([current[probing], renamed], how="horizontal")
        both = both.with_columns(
            pl.max_horizontal(T, "_t2").alias(T), pl.min_horizontal(E, "_e2").alias(E), *weight
        )
        keep = pl.col("_fits") & (pl.col(T) < pl.col(E))
        for check in checks:
            keep &= is_true(check)
        return both.filter(keep).drop("_t2", "_e2", "_fits", *(["_w2"] if weight else []))


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
    found = task.stored_between(_table(task, flow, target, step.index), earliest + 1, before)
    _, high = task.range_of(flow)
    if before == high:
        fresh = _indexed(task, flow, target, step.index)
        if fresh.frame.height:
            found.append(fresh)
    return found


def _table(task: Task, flow: Flow, target: ph.AnyOp, index: tuple[Expr, ...]) -> str:
    return task.state_table(flow, target, f"stem-{ph.key_label(index)}")


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
        table = _table(task, flow, target, index)

        def write(table: str = table, index: tuple[Expr, ...] = index) -> bool:
            frame = _indexed(task, flow, target, index).frame
            mine = frame if task.is_alone else frame.filter(task.owns_hash())
            if mine.height:
                columns = names(len(target.types))
                merge = tables.merge_intervals(columns, low)
                tables.append(task, table, mine, merge, low=T, high=E)
            return True

        task.once(("stored", table), write)
