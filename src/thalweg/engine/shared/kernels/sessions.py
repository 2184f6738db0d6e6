"""Session windows: tuples of a key that follow each other closely are seen together, at the end.

State, by key: the tuples of the session that has not ended, and when it will end if nothing comes
any more. So a tick looks only at the keys that have new tuples or an end that is due, and reads the
tuples of a session back once, when it ends.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.frames import TS, E, H, T, W, empty_relation, name, names
from thalweg.engine.shared.kernels.hops import bounds
from thalweg.engine.shared.kernels.streams import remember_reach
from thalweg.engine.shared.state import tables
from thalweg.engine.shared.state.hashing import with_hash
from thalweg.engine.shared.state.names import Table
from thalweg.engine.shared.tick.plan import Flow
from thalweg.engine.shared.tick.task import Task
from thalweg.plan.windows import BEGINNING

OPEN, FIRST, CLOSES = "_open", "_first", "_closes"


def sessions_of(task: Task, flow: Flow, op: ph.SessionsOf) -> pl.DataFrame:
    return _Sessions(task, flow, op).delta()


class _Sessions:
    """One evaluation of one Session window."""

    def __init__(self, task: Task, flow: Flow, op: ph.SessionsOf) -> None:
        self.task, self.flow, self.op = task, flow, op
        self.columns = names(len(op.input.types))
        self.keys = [name(k) for k in op.window.partition_by]
        self.group = [*self.keys, H]
        self.gap = op.window.gap
        self.low, self.high = task.range_of(flow)

    def delta(self) -> pl.DataFrame:
        arrived = self.task.evaluate(self.flow, self.op.input).select(*self.columns, TS, W)
        fresh = with_hash(arrived, [pl.col(k) for k in self.keys])
        known = self._known_ends(fresh)
        members = self._members(fresh, known)
        if not members.height:
            remember_reach(self.task, self.flow, self.op, BEGINNING)
            return empty_relation(self.op.types)
        reach = int(members[E].max()) + self.gap  # type: ignore[arg-type]
        remember_reach(self.task, self.flow, self.op, reach)
        old, new = members.filter(OPEN), members.filter(~pl.col(OPEN))
        recalled = self._recalled(old.filter(CLOSES))
        self._store_tuples(new.filter(~pl.col(CLOSES)), recalled)
        self._store_ends(members, known)
        return self._rows(pl.concat([recalled, new.filter(CLOSES).select(recalled.columns)]))

    # --- which sessions there are

    def _known_ends(self, fresh: pl.DataFrame) -> pl.DataFrame:
        """The ends of open sessions that are due, or whose key has new tuples."""
        table = self.task.state_table(self.flow, self.op, "ends")
        due = pl.col(E).is_between(self.low, self.high, closed="left")
        mine = due if self.task.is_alone else due & self.task.owns_hash()
        ends = [m.frame.filter(mine) for m in self.task.stored_between(table, self.low, self.high)]
        hashes = np.unique(np.concatenate([fresh[H].to_numpy(), *(f[H].to_numpy() for f in ends)]))
        found = tables.find(self.task.stored(table), hashes) if len(hashes) else None
        if found is None:
            return fresh.select(*self.group, pl.lit(0, dtype=pl.Int64).alias(E)).clear()
        there = found.group_by([*self.group, E]).agg(pl.col(W).sum())
        # What took an old end away may outlive it: segments go when all their ends have passed.
        return there.filter(pl.col(W) > 0).select(*self.group, E)

    def _members(self, fresh: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
        """New tuples, and one for the last of each open session, with their session's end.

        Every tuple of an open session is older than the new ones, so the last one stands for all.
        """
        order = [*self.columns, TS, W, H, OPEN]
        last = known.with_columns(
            (pl.col(E) - self.gap).alias(TS),
            pl.lit(1, dtype=pl.Int64).alias(W),
            pl.lit(True).alias(OPEN),
            *(pl.lit(None, dtype=fresh.schema[c]).alias(c) for c in self._others),
        )
        together = pl.concat(
            [fresh.with_columns(pl.lit(False).alias(OPEN)).select(order), last.select(order)]
        ).sort(*self.group, TS)
        begins = (pl.col(TS) - pl.col(TS).shift(1).over(self.group)).fill_null(self.gap) >= self.gap
        numbered = together.with_columns(begins.cum_sum().alias("_session"))
        return numbered.with_columns(
            pl.col(TS).min().over("_session").alias(FIRST),
            (pl.col(TS).max().over("_session") + self.gap).alias(E),
        ).with_columns((pl.col(E) < self.high).alias(CLOSES))

    @property
    def _others(self) -> list[str]:
        return [c for c in self.columns if c not in self.keys]

    def _recalled(self, closing: pl.DataFrame) -> pl.DataFrame:
        """The stored tuples of open sessions that end, with their session's end."""
        ends = closing.select(*self.group, E, "_session")
        stored = self.task.stored(self._tuples)
        hashes = np.unique(ends[H].to_numpy())
        found = tables.find(stored, hashes) if len(hashes) else None
        shown = [*self.columns, TS, W, H, E, "_session"]
        if found is None:
            return closing.clear().select(shown)
        there = found.group_by([*self.columns, TS, H]).agg(pl.col(W).sum()).filter(pl.col(W) != 0)
        return there.join(ends, on=self.group, nulls_equal=True).select(shown)

    # --- what is shown, and what is kept

    def _rows(self, ended: pl.DataFrame) -> pl.DataFrame:
        window = self.op.window
        shown = [pl.col(c) for c in self.columns]
        if window.bounds is not None:
            first = pl.col(TS).min().over("_session")
            shown += bounds(window.bounds, first, pl.col(E), len(self.columns))
        until = (pl.col(E) + self.gap).alias(E)
        return ended.select(*shown, pl.col(E).alias(T), until, W)

    def _store_tuples(self, staying: pl.DataFrame, recalled: pl.DataFrame) -> None:
        stored = [*self.columns, TS, H]
        change = pl.concat(
            [staying.select(*stored, W), recalled.select(*stored, (-pl.col(W)).alias(W))]
        )
        if change.height:
            tables.append(self.task, self._tuples, change, tables.merge_by(stored, [W]))

    def _store_ends(self, members: pl.DataFrame, known: pl.DataFrame) -> None:
        """Of each key that was looked at, the old end goes and the one of what stays open comes."""
        by = [*self.group, E]
        staying = members.filter(~pl.col(CLOSES)).select(by).unique()
        one = pl.lit(1, dtype=pl.Int64)
        change = pl.concat(
            [staying.with_columns(one.alias(W)), known.select(by).with_columns((-one).alias(W))]
        )
        change = change.group_by(by, maintain_order=True).agg(pl.col(W).sum())
        change = change.filter(pl.col(W) != 0)
        if change.height:
            table = self.task.state_table(self.flow, self.op, "ends")
            tables.append(self.task, table, change, tables.merge_by(by, [W]), low=E, high=E)

    @property
    def _tuples(self) -> Table:
        return self.task.state_table(self.flow, self.op, "tuples")
