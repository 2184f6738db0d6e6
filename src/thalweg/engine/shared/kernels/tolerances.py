"""Tolerance classes: of a base stream the rows that are due for each class (`TOLERANCE`).

All classes of a stream that count by the same key are computed together, from the unfiltered
stream. State, by key and class: the row that passed last, with the instant at which it did; by age,
also the newest row that waits and when it is due. What a class holds is what a query begins with
that joins it (`tolerance_classes`).
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.expressions.translate import is_true
from thalweg.engine.shared.frames import POS, TS, E, H, W, empty_stream, name, names
from thalweg.engine.shared.kernels.due_rows import (
    NONE,
    STORED,
    Held,
    Keys,
    Margins,
    aged,
    counted,
    deviating,
    numbers,
)
from thalweg.engine.shared.kernels.streams import remember_reach
from thalweg.engine.shared.state import tables
from thalweg.engine.shared.state.hashing import with_hash
from thalweg.engine.shared.state.names import HELD, SINCE, WAITING, Table
from thalweg.engine.shared.tick.plan import Flow
from thalweg.engine.shared.tick.task import Task
from thalweg.plan.coherency.tolerance import Age, ChangesSince, Deviation, RelativeDeviation
from thalweg.plan.expr import Col
from thalweg.plan.windows import BEGINNING

CLASS, BEHIND, ROW, AT = "_class", "_behind", "_row", "_at"
_INT, _PLACE = pl.Int64, "_place"


def tolerant_of(task: Task, flow: Flow, op: ph.TolerantOf) -> pl.DataFrame:
    key = ("tolerances", flow.name, task.plan.name_of(op.input))
    found = task.once(key, lambda: _Classes(task, flow, op.input).passed())
    return found.get(task.plan.name_of(op), empty_stream(op.types))


def placed_of(task: Task, flow: Flow, op: ph.PlacedOf) -> pl.DataFrame:
    rows, width = task.evaluate(flow, op.input), len(op.input.types)
    place = (pl.col(TS).alias(name(width)), pl.col(POS).alias(name(width + 1)))
    return rows.select(*names(width), *place, TS, POS, W)


def due_of(task: Task, flow: Flow, op: ph.DueOf) -> pl.DataFrame:
    return task.evaluate(flow, op.input).filter(is_true(op.predicate))


class _Classes:
    """One evaluation of all classes over one input."""

    def __init__(self, task: Task, flow: Flow, source: ph.Exchange) -> None:
        self.task, self.flow, self.source = task, flow, source
        of_source = (o for o in flow.operators if isinstance(o, ph.TolerantOf))
        self.ops = {task.plan.name_of(o): o for o in of_source if o.input == source}
        self.columns = names(len(source.types))
        self.keys = [name(k.index) for k in source.keys or () if isinstance(k, Col)]
        self.group = [*self.keys, H]
        self.low, self.high = task.range_of(flow)

    def passed(self) -> dict[str, pl.DataFrame]:
        """By class, as stream rows."""
        if self.low == self.high:
            return {}
        arrived = self.task.evaluate(self.flow, self.source).select(*self.columns, TS, POS)
        fresh = with_hash(arrived, [pl.col(k) for k in self.keys])
        parts: dict[str, list[pl.DataFrame]] = {}
        for since, classes in self._by_start().items():
            counted_in = fresh if since == BEGINNING else fresh.filter(pl.col(TS) >= since)
            self._advance(counted_in, classes, since, parts)
        return {c: self._stream(c, frames) for c, frames in parts.items()}

    def _by_start(self) -> dict[int, list[str]]:
        """Classes by the instant from which they count here: all, but for those that a new query
        has joined, which have counted what was before."""
        starts: dict[str, int] = {}
        for mapped in self.task.stored(self._table(SINCE)):
            starts.update(mapped.frame.select(CLASS, E).iter_rows())
        found: dict[int, list[str]] = {}
        for class_ in self.ops:
            found.setdefault(starts.get(class_, BEGINNING), []).append(class_)
        return found

    def as_stream(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Rows that pass at AT."""
        return rows.select(*self.columns, pl.col(AT).alias(TS), POS, pl.lit(1, dtype=_INT).alias(W))

    def _stream(self, class_: str, frames: list[pl.DataFrame]) -> pl.DataFrame:
        rows = frames[0] if len(frames) == 1 else pl.concat(frames)
        if isinstance(self.ops[class_].tolerance, Age) and rows.height:
            reach = int(rows[TS].max())  # type: ignore[arg-type]
            remember_reach(self.task, self.flow, self.ops[class_], reach)
        return rows

    # --- what is known, and what comes

    def _advance(
        self,
        fresh: pl.DataFrame,
        classes: list[str],
        since: int,
        parts: dict[str, list[pl.DataFrame]],
    ) -> None:
        joins = self.low < since
        waiting = self._waiting(fresh, everything=joins)
        hashes = np.unique(np.concatenate([fresh[H].to_numpy(), waiting[H].to_numpy()]))
        held = self._found(HELD, hashes, [AT, BEHIND], everything=joins)
        held, waiting = (f.filter(pl.col(CLASS).is_in(classes)) for f in (held, waiting))
        if joins:  # what was held then is there from the instant on at which it passed
            there = held.filter(pl.col(AT).is_between(self.low, self.high, closed="left"))
            for class_, rows in _by_class(there).items():
                parts.setdefault(class_, []).append(self.as_stream(rows))
        if not fresh.height and not waiting.height:
            return
        work = _Work(self, fresh, held, waiting)
        work.run(classes)
        for class_, rows in work.rows.items():
            parts.setdefault(class_, []).append(rows)
        self._store(work)

    def _waiting(self, fresh: pl.DataFrame, *, everything: bool) -> pl.DataFrame:
        """What waits by age and is due, or whose key has new rows."""
        hashes = fresh[H].to_numpy()
        if any(isinstance(o.tolerance, Age) for o in self.ops.values()):
            table = self._table(WAITING)
            is_due = pl.col(E).is_between(self.low, self.high, closed="left")
            mine = is_due if self.task.is_alone else is_due & self.task.owns_hash()
            stored = self.task.stored_between(table, self.low, self.high)
            due = [m.frame.filter(mine)[H].to_numpy() for m in stored]
            hashes = np.concatenate([hashes, *due])
        found = self._found(WAITING, np.unique(hashes), [E], everything=everything)
        # What was due has passed, though the row that takes it away may be gone before it.
        return found.filter(pl.col(E) >= self.low)

    def _found(
        self, part: str, hashes: np.ndarray, extra: list[str], *, everything: bool
    ) -> pl.DataFrame:
        """The stored rows of these keys, or of all that this task owns."""
        order = [CLASS, *self.columns, TS, POS, *extra, H]
        stored = self.task.stored(self._table(part))
        if everything:
            mine = [
                m.frame if self.task.is_alone else m.frame.filter(self.task.owns_hash())
                for m in stored
            ]
            found = pl.concat(mine) if mine else None
        else:
            found = tables.find(stored, hashes) if len(hashes) else None
        if found is None:
            return pl.DataFrame(schema=self._schema(extra)).select(order)
        there = found.group_by(order).agg(pl.col(W).sum())
        return there.filter(pl.col(W) > 0).select(order)

    def _schema(self, extra: list[str]) -> dict[str, Any]:
        data = dict(empty_stream(self.source.types).schema)
        return {CLASS: pl.String, **data, **dict.fromkeys(extra, _INT), H: pl.UInt64}

    # --- what is kept

    def _store(self, work: _Work) -> None:
        for part, extra, before, after in (
            (HELD, [AT, BEHIND], work.held, work.held_now),
            (WAITING, [E], work.waiting, work.waiting_now),
        ):
            stored = [CLASS, *self.columns, TS, POS, *extra, H]
            one = pl.lit(1, dtype=_INT)
            change = pl.concat(
                [
                    after.select(*stored, one.alias(W)),
                    before.select(*stored, (-one).alias(W)),
                ]
            )
            change = change.group_by(stored, maintain_order=True).agg(pl.col(W).sum())
            change = change.filter(pl.col(W) != 0)
            if change.height:
                ends = {"low": E, "high": E} if part == WAITING else {}
                tables.append(self.task, self._table(part), change, self._merged(stored), **ends)

    def _merged(self, stored: list[str]) -> tables.Merge:
        """Classes that nobody reads any more go on the way."""
        merge, read = tables.merge_by(stored, [W]), list(self.ops)
        return lambda frame: merge(frame.filter(pl.col(CLASS).is_in(read)))

    def _table(self, part: str) -> Table:
        return self.task.state_table(self.flow, self.source, part)


class _Work:
    """Rows in order, key by key, and what passes of them for each class."""

    def __init__(
        self, of: _Classes, fresh: pl.DataFrame, held: pl.DataFrame, waiting: pl.DataFrame
    ) -> None:
        self._of, self.held, self.waiting = of, held, waiting
        keys = pl.concat([f.select(of.group) for f in (fresh, held, waiting)]).unique()
        self._keys = keys.with_row_index(_PLACE)
        self._rows = self._placed(fresh).sort(_PLACE, TS, POS)
        count = np.bincount(self._rows[_PLACE].to_numpy(), minlength=keys.height)
        self._spans = Keys(np.cumsum(count) - count, count)
        self.rows: dict[str, pl.DataFrame] = {}
        self._held_now: list[pl.DataFrame] = []
        self._waiting_now: list[pl.DataFrame] = []

    def _placed(self, frame: pl.DataFrame) -> pl.DataFrame:
        return frame.join(self._keys, on=self._of.group, nulls_equal=True)

    @cached_property
    def _held_of(self) -> dict[str, pl.DataFrame]:
        return _by_class(self.held)

    @cached_property
    def _waiting_of(self) -> dict[str, pl.DataFrame]:
        return _by_class(self.waiting)

    @property
    def held_now(self) -> pl.DataFrame:
        return pl.concat([self.held.clear(), *self._held_now])

    @property
    def waiting_now(self) -> pl.DataFrame:
        return pl.concat([self.waiting.clear(), *self._waiting_now])

    def run(self, classes: list[str]) -> None:
        by_column: dict[int, list[str]] = {}
        for class_ in classes:
            op = self._of.ops[class_]
            if op.column is not None:
                by_column.setdefault(op.column, []).append(class_)
            elif isinstance(op.tolerance, ChangesSince):
                self._count(class_, op.tolerance.updates)
            else:
                assert isinstance(op.tolerance, Age)
                self._age(class_, op.tolerance.instants)
        for column, of_column in by_column.items():
            self._compare(column, of_column)

    # --- by value

    def _compare(self, column: int, classes: list[str]) -> None:
        type_ = self._of.source.types[column]
        tolerances = [self._of.ops[c].tolerance for c in classes]
        margins = Margins(
            [t for t in tolerances if isinstance(t, Deviation | RelativeDeviation)], type_
        )
        number = pl.DataFrame({CLASS: classes, "_number": range(len(classes))})
        old = self._placed(self.held.join(number, on=CLASS, maintain_order="left"))
        values = pl.concat([self._rows[name(column)], old[name(column)]])
        found = numbers(values, type_, is_wide=margins.needs_products)
        fresh, before = found[: self._rows.height], found[self._rows.height :]
        shape = self._keys.height, len(classes)
        held = Held(
            np.full(shape, NONE), np.zeros(shape, dtype=found.values.dtype), np.zeros(shape, bool)
        )
        at = old[_PLACE].to_numpy(), old["_number"].to_numpy()
        held.row[at] = STORED
        held.value[at], held.is_missing[at] = before.values, before.is_missing
        _, class_, row = deviating(self._spans, fresh, margins, held)
        order = np.argsort(class_, kind="stable")
        bounds = np.searchsorted(class_[order], np.arange(len(classes) + 1))
        # Gathered once for all classes, of which each has a slice.
        passing = self._rows[row[order]]
        passing = self._of.as_stream(passing.with_columns(pl.col(TS).alias(AT)))
        for each, (first, last) in zip(classes, pairwise(bounds.tolist()), strict=True):
            if first < last:
                self.rows[each] = passing[first:last]
        kept = old.filter(pl.Series(held.row[at] == STORED, dtype=pl.Boolean))
        self._held_now.append(kept.select(self.held.columns))
        key_at, class_at = np.nonzero(held.row >= 0)
        rows = self._rows[held.row[key_at, class_at]]
        self._hold(rows, pl.Series(CLASS, classes, dtype=pl.String)[class_at], rows[TS], 0)

    # --- by rows

    def _count(self, class_: str, updates: int) -> None:
        old = self._placed(self._held_of.get(class_, self.held.clear()))
        behind = np.full(self._keys.height, -1)
        behind[old[_PLACE].to_numpy()] = old[BEHIND].to_numpy()
        (_, _, row), after = counted(self._spans, behind, updates)
        self._passed(class_, row, None)
        place = self._rows[_PLACE].to_numpy()[row]
        last = np.full(self._keys.height, -1)
        last[place] = row  # ascending within a key: the last one stays
        new = np.flatnonzero(last >= 0)
        self._hold(self._rows[last[new]], class_, self._rows[TS][last[new]], after[new])
        stays = old.filter(pl.Series(last[old[_PLACE].to_numpy()] < 0, dtype=pl.Boolean))
        now = pl.Series(BEHIND, after[stays[_PLACE].to_numpy()], dtype=_INT)
        self._held_now.append(stays.with_columns(now).select(self.held.columns))

    # --- by age

    def _age(self, class_: str, age: int) -> None:
        old = self._placed(self._held_of.get(class_, self.held.clear()))
        waits = self._placed(self._waiting_of.get(class_, self.waiting.clear()))
        has_held, due_of = (
            set(old[_PLACE].to_list()),
            dict(zip(waits[_PLACE], waits[E], strict=True)),
        )
        shown = [*self._of.columns, TS, POS, H]
        # The rows that wait stand behind the new ones, so that a number tells each.
        every = pl.concat([self._rows.select(shown), waits.select(shown)])
        waiting_row = {p: self._rows.height + i for i, p in enumerate(waits[_PLACE])}
        stamps = self._rows[TS].to_list()
        passing: list[tuple[int, int]] = []
        holding: list[tuple[int, int]] = []
        left: list[tuple[int, int]] = []
        again: list[int] = []
        for key in range(self._keys.height):
            start, count = int(self._spans.start[key]), int(self._spans.count[key])
            own = stamps[start : start + count]
            rows, due = aged(own, age, self._of.high, due_of.get(key), key in has_held)
            found = [(at, start + r if r >= 0 else waiting_row[key]) for at, r in rows]
            passing += found
            if found:
                holding.append(found[-1])
            elif key in has_held:
                again.append(key)
            if due is not None:
                left.append((due, start + count - 1 if count else waiting_row[key]))
        instants, numbers_ = _columns(passing)
        self._passed(class_, numbers_, instants, every)
        instants, numbers_ = _columns(holding)
        self._hold(every[numbers_], class_, pl.Series(instants, dtype=_INT), 0)
        kept = old.filter(pl.col(_PLACE).is_in(again))
        self._held_now.append(kept.select(self.held.columns))
        instants, numbers_ = _columns(left)
        later = every[numbers_].with_columns(
            pl.lit(class_).alias(CLASS), pl.Series(E, instants, dtype=_INT)
        )
        self._waiting_now.append(later.select(self.waiting.columns))

    # --- what came of it

    def _passed(
        self, class_: str, rows: np.ndarray, at: np.ndarray | None, of: pl.DataFrame | None = None
    ) -> None:
        frame = (self._rows if of is None else of)[rows]
        stamps = frame[TS] if at is None else pl.Series(at, dtype=_INT)
        self.rows[class_] = self._of.as_stream(frame.with_columns(stamps.alias(AT)))

    def _hold(self, rows: pl.DataFrame, class_: Any, at: pl.Series, behind: Any) -> None:
        count = rows.height
        named = (
            class_
            if isinstance(class_, pl.Series)
            else pl.Series([class_] * count, dtype=pl.String)
        )
        numbers_ = np.broadcast_to(np.asarray(behind, dtype=np.int64), (count,))
        held = rows.with_columns(
            named.alias(CLASS), at.alias(AT), pl.Series(BEHIND, numbers_.copy(), dtype=_INT)
        )
        self._held_now.append(held.select(self.held.columns))


def _columns(pairs: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    both = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def _by_class(frame: pl.DataFrame) -> dict[str, pl.DataFrame]:
    return {str(c): rows for (c,), rows in frame.partition_by(CLASS, as_dict=True).items()}
