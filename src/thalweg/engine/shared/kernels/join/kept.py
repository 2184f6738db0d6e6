"""Intermediates of a join: what is made of them in a tick is kept, to be probed from the next on.

Deltas of the inputs of A ⋈ B meet each other first, whatever comes behind: so the rows to be kept
pass by, and cost no probe. They are kept like all state, as interval rows in segments by the hash
of the key by which they are probed; they go with their intervals. Where an intermediate begins
between two ticks, its rows as of that instant are joined from the SteMs of its inputs, once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import polars as pl

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.expressions.translate import to_polars
from thalweg.engine.shared.frames import FOREVER, E, H, T, W, name
from thalweg.engine.shared.kernels.join.probe import Rows, derived_table, probe
from thalweg.engine.shared.kernels.join.probing import Step, probing_order, steps
from thalweg.engine.shared.kernels.join.shapes import (
    Inputs,
    inputs_text,
    kept_columns,
    kept_indexes,
    kept_part,
)
from thalweg.engine.shared.kernels.source import present
from thalweg.engine.shared.state import tables
from thalweg.engine.shared.state.hashing import key_hashes, with_hash
from thalweg.engine.shared.state.names import Table
from thalweg.engine.shared.tick.messages import ShapeSpec
from thalweg.engine.shared.tick.plan import Flow
from thalweg.engine.shared.tick.task import Task
from thalweg.plan.expr import shift
from thalweg.plan.windows import BEGINNING

MOST_ROWS = 1 << 21  # of a task in a tick; who makes more is not kept


class Keeping:
    """What one join keeps in a tick."""

    def __init__(self, task: Task, flow: Flow, op: ph.Join, shape: ShapeSpec) -> None:
        self._task, self._flow, self._op, self._shape = task, flow, op, shape
        self._columns = {k: [name(c) for c in kept_columns(op, k)] for k in shape.kept}
        self._parts: dict[Inputs, list[pl.DataFrame]] = {k: [] for k in shape.kept}
        self._rows = dict.fromkeys(shape.kept, 0)

    def take(self, kept_after: Mapping[int, Inputs], done: int, rows: Rows) -> None:
        """Rows that pass by after so many steps."""
        inputs = kept_after.get(done)
        if inputs is not None:
            self._add(inputs, rows)

    def _add(self, inputs: Inputs, rows: Rows) -> None:
        self._rows[inputs] += len(rows)
        if self._is_too_much(inputs):
            self._parts[inputs].clear()
            return
        times = [pl.Series(T, rows.start), pl.Series(E, rows.end), pl.Series(W, rows.weight)]
        self._parts[inputs].append(rows.data[self._columns[inputs]].hstack(times))

    def _is_too_much(self, inputs: Inputs) -> bool:
        return self._rows[inputs] > MOST_ROWS

    def write(self) -> None:
        task, report = self._task, {}
        for inputs in self._shape.kept:
            if inputs not in self._shape.usable:
                self._begin(inputs)
            if not self._is_too_much(inputs):
                self._store(inputs)
            too_much = self._is_too_much(inputs)
            report[inputs_text(inputs)] = -1 if too_much else self._rows[inputs]
        task.report.kept[task.plan.place_of(self._flow, self._op)] = report

    def _begin(self, inputs: Inputs) -> None:
        """What would have been kept so far."""
        low, _ = self._task.range_of(self._flow)
        for rows in _content(self._task, self._flow, self._op, inputs):
            if self._is_too_much(inputs):
                return
            self._add(inputs, rows.where(rows.end > low))

    def _store(self, inputs: Inputs) -> None:
        parts = [p for p in self._parts[inputs] if p.height]
        if not parts:
            return
        rows = pl.concat(parts)
        for index in kept_indexes(self._op, inputs):
            hashed = with_hash(rows, [to_polars(e) for e in index]).sort(H)
            table = self._task.state_table(self._flow, self._op, kept_part(inputs, index))
            self._append(table, inputs, hashed)

    def _append(self, table: Table, inputs: Inputs, rows: pl.DataFrame) -> None:
        """Rows of other tasks' hashes lie by themselves, so that these can merge them."""
        task = self._task
        merge = self._merge(inputs)
        hashes = rows[H].to_numpy()
        for number, (first, last) in enumerate(task.ranges):
            low = int(np.searchsorted(hashes, np.uint64(first)))
            high = int(np.searchsorted(hashes, np.uint64(last), side="right"))
            part = rows.slice(low, high - low)
            if not part.height:
                continue
            if number == task.number:
                tables.append(task, table, part, merge, low=T, high=E)
            else:
                begin, end = int(part[T].min()), int(part[E].max())  # type: ignore[arg-type]
                task.writer.add(table, part, begin, end)

    def _merge(self, inputs: Inputs) -> tables.Merge:
        low, _ = self._task.range_of(self._flow)
        if all(isinstance(self._op.inputs[i], ph.Source) for i in inputs):
            return lambda frame: frame.filter(pl.col(E) > low)  # nothing is ever taken back
        return tables.merge_intervals(self._columns[inputs], low)


def _content(task: Task, flow: Flow, op: ph.Join, inputs: Inputs) -> Iterator[Rows]:
    """The join of some inputs as of the last tick, in pieces; this task's part of it."""
    low, _ = task.range_of(flow)
    if low == BEGINNING:
        return
    start, wanted = inputs[0], op.wanted
    order = [i for i in probing_order(op, start, {}, (inputs,)) if i in inputs]
    planned = [replace(s, sees_new=False) for s in steps(op, start, order)]
    rows = _present(task, flow, op, start, planned[0])

    def onward(rows: Rows, done: int) -> Iterator[Rows]:
        if done == len(planned):
            yield rows
            return
        step = planned[done]
        for piece in probe(task, flow, op, start, step, rows, wanted[step.target]):
            yield from onward(piece, done + 1)

    if len(rows):
        yield from onward(rows, 0)


def _present(task: Task, flow: Flow, op: ph.Join, start: int, step: Step) -> Rows:
    """One input's rows as of the last tick, those whose first probe this task owns."""
    low, _ = task.range_of(flow)
    first, offset, wanted = op.inputs[start], op.offsets[start], op.wanted[start]
    keys = tuple(shift(e, -offset) for e in step.probe)
    if isinstance(first, ph.Source):
        frame, is_own = present(task, flow, first, keys)
    else:
        stored = task.stored_between(derived_table(task, flow, op, first, keys), low + 1, FOREVER)
        frames = [m.frame.filter((pl.col(E) > low) & task.owns_hash()) for m in stored]
        if not frames:
            nothing = np.empty(0, dtype=np.int64)
            return Rows(pl.DataFrame(), nothing, nothing, nothing)
        frame, is_own = pl.concat(frames, how="diagonal"), True
    data = frame[[name(c) for c in wanted]]
    data.columns = [name(offset + c) for c in wanted]
    # When they began no longer matters: the tuples that they met then need not be looked at.
    rows = Rows(data, np.full(frame.height, low - 1), *(frame[c].to_numpy() for c in (E, W)))
    if is_own or task.is_alone:
        return rows
    hashes = key_hashes(rows.data, [to_polars(e) for e in step.probe])
    return rows.where((hashes >= task.low) & (hashes <= task.high))
