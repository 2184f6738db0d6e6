"""GROUP BY: accumulators per group, added up along the instants of a tick.

Every accumulator is a sum, so the state is additive (`tables`): the number of rows, per argument
the number and the sum of its values (doubles as exact lanes, `exact`), for DISTINCT over values as
they come and go. MIN and MAX look at the multiset of a group's values (`extremes`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.expressions.translate import to_polars
from thalweg.engine.shared.frames import (
    FOREVER,
    E,
    H,
    T,
    W,
    dtype,
    empty_relation,
    name,
    names,
)
from thalweg.engine.shared.kernels import accumulators
from thalweg.engine.shared.kernels.accumulators import (
    ROWS,
    contributed,
    extreme_name,
    is_sum,
    sum_prefix,
    value_name,
)
from thalweg.engine.shared.kernels.expiry import events
from thalweg.engine.shared.kernels.extremes import extremes
from thalweg.engine.shared.kernels.panes import pane_events
from thalweg.engine.shared.kernels.running import FIRST, along_time, appearances, stored_sums
from thalweg.engine.shared.state import tables
from thalweg.engine.shared.state.hashing import with_hash
from thalweg.engine.shared.state.names import EMITTED
from thalweg.engine.shared.tick.plan import Flow
from thalweg.engine.shared.tick.task import Task
from thalweg.plan.aggregates import AggCall
from thalweg.plan.expr import Col, Expr
from thalweg.plan.types import SqlType

# For an argument and sides (min, max): the tables in which they are kept, with what changes there.
Values = Callable[[int, list[str]], list[tuple[str, pl.DataFrame, list[str]]]]


def aggregate(task: Task, flow: Flow, op: ph.Aggregate) -> pl.DataFrame:
    assert isinstance(op.input, ph.Exchange)
    if isinstance(op.input.input, ph.Panes):
        return _merged(task, flow, op, op.input.input)
    happened = events(task, flow, op, op.input, "ends")
    if not happened.height:
        return empty_relation(op.types)
    keys = names(len(op.keys))
    args = list(dict.fromkeys(a.arg for a in op.aggregates if a.arg is not None))
    columns = [
        *(to_polars(k).cast(dtype(k.type)).alias(c) for k, c in zip(op.keys, keys, strict=True)),
        *(to_polars(a).cast(dtype(a.type)).alias(value_name(i)) for i, a in enumerate(args)),
    ]
    changes = happened.select(*columns, T, W)
    grouping = _Grouping(task, flow, op, keys, args)
    return grouping.changelog(
        grouping.contributions(changes), lambda i, sides: [(f"multiset-{i}", changes, sides)]
    )


def _merged(task: Task, flow: Flow, op: ph.Aggregate, panes: ph.Panes) -> pl.DataFrame:
    """Partial aggregates are added up as they enter and leave the window."""
    happened = pane_events(task, flow, panes)
    if not happened.height:
        return empty_relation(op.types)
    keys = names(len(op.keys))
    args: list[Expr] = [Col(len(keys) + i, a.type) for i, a in enumerate(panes.input.args)]
    sums = [pl.col(c) * pl.col(W) for c in happened.columns if is_sum(c)]

    def of_panes(i: int, sides: list[str]) -> list[tuple[str, pl.DataFrame, list[str]]]:
        """A pane has one least and one greatest value."""
        columns = {side: pl.col(extreme_name(side, i)).alias(value_name(i)) for side in sides}
        return [
            (f"multiset-{i}-{side}", happened.select(*keys, column, T, W), [side])
            for side, column in columns.items()
        ]

    grouping = _Grouping(task, flow, op, keys, args)
    return grouping.changelog([happened.select(*keys, T, *sums)], of_panes)


class _Grouping:
    """One evaluation of one Aggregate; holds what its steps have in common."""

    def __init__(
        self, task: Task, flow: Flow, op: ph.Aggregate, keys: list[str], args: list[Expr]
    ) -> None:
        self.task, self.flow, self.op, self.keys, self.args = task, flow, op, keys, args

    def changelog(self, contributed: list[pl.DataFrame], values: Values) -> pl.DataFrame:
        """`contributed` are sums by group and instant, `values` what MIN and MAX look at."""
        frame = pl.concat(contributed, how="diagonal")
        sums = [c for c in frame.columns if c not in (*self.keys, T)]
        frame = frame.with_columns(pl.col(c).fill_null(0) for c in sums)
        steps = self._steps(frame, sums)
        steps = steps.with_columns(self._extremes(values, steps))
        return self._differences(self._results(steps))

    # --- contributions

    def contributions(self, changes: pl.DataFrame) -> list[pl.DataFrame]:
        changes = changes.with_columns(pl.col(W).alias(ROWS))
        kept = [pl.col(c) for c in (*self.keys, T, ROWS)]
        plain = contributed(changes, kept, self._summed(distinct=False), "p")
        return [plain, *(self._distinct(changes, i) for i in self._summed(distinct=True))]

    def _summed(self, *, distinct: bool) -> dict[int, SqlType]:
        """The arguments whose values (each, or each once) an additive aggregate looks at."""
        return {
            i: arg.type
            for i, arg in enumerate(self.args)
            if any(
                a.arg == arg and a.distinct == distinct and a.function in ("sum", "avg", "count")
                for a in self.op.aggregates
            )
        }

    def _distinct(self, changes: pl.DataFrame, i: int) -> pl.DataFrame:
        """The values of one argument, counted when they first appear and when the last one goes."""
        values = changes.filter(pl.col(value_name(i)).is_not_null())
        table = self.task.state_table(self.flow, self.op, f"values-{i}")
        seen = appearances(self.task, table, values, [*self.keys, value_name(i)])
        kept = [pl.col(c) for c in (*self.keys, T)]
        return contributed(seen, kept, {i: self.args[i].type}, "d")

    # --- along time

    def _steps(self, frame: pl.DataFrame, sums: list[str]) -> pl.DataFrame:
        grouped = frame.group_by([*self.keys, T]).agg(pl.col(s).sum() for s in sums)
        grouped = with_hash(grouped, [pl.col(k) for k in self.keys])
        fixed = [s for s in sums if ":" not in s]
        stored = stored_sums(self.task, self._table("state"), grouped[H], self.keys, fixed)
        lanes = self._stored_lanes(grouped[H])
        self._store(grouped, fixed, [s for s in sums if ":" in s])
        if stored is not None and lanes is not None:
            stored = (
                stored.join(lanes.drop(H), on=self.keys, how="left", nulls_equal=True)
                if (self.keys)
                else stored.join(lanes, on=H, how="left")
            )
        if self._lasts:
            stored = self._with_markers(stored, grouped[H])
        return along_time(grouped, stored, self.keys)

    def _table(self, part: str) -> str:
        return self.task.state_table(self.flow, self.op, part)

    def _store(self, grouped: pl.DataFrame, fixed: list[str], lanes: list[str]) -> None:
        by = [*self.keys, H]
        total = grouped.group_by(by, maintain_order=True).agg(
            pl.col(s).sum() for s in fixed + lanes
        )
        tables.append(
            self.task,
            self._table("state"),
            total.select(*by, *fixed),
            tables.merge_by(by, fixed),
        )
        if lanes:
            long = total.select(*by, *lanes).unpivot(
                on=lanes, index=by, variable_name="_lane", value_name="_sum"
            )
            long = long.filter(pl.col("_sum") != 0)
            if long.height:
                merge = tables.merge_by([*by, "_lane"], ["_sum"])
                tables.append(self.task, self._table("lanes"), long, merge)

    def _stored_lanes(self, hashes: pl.Series) -> pl.DataFrame | None:
        found = tables.find(self.task.stored(self._table("lanes")), np.unique(hashes.to_numpy()))
        if found is None:
            return None
        used = found["_lane"].unique().sort().to_list()
        return found.group_by([*self.keys, H]).agg(
            pl.col("_sum").filter(pl.col("_lane") == lane).sum().alias(lane) for lane in used
        )

    # --- results

    def _extremes(self, values: Values, steps: pl.DataFrame) -> list[pl.Series]:
        found = []
        for i, arg in enumerate(self.args):
            calls = [a for a in self.op.aggregates if a.arg == arg]
            sides = sorted({a.function for a in calls if a.function in ("min", "max")})
            for part, changes, of in values(i, sides) if sides else ():
                table = self._table(part)
                found += extremes(self.task, table, changes, steps, self.keys, value_name(i), of)
        return found

    def _results(self, steps: pl.DataFrame) -> pl.DataFrame:
        """Output columns after each step, and whether the group has a row there."""
        width = len(self.keys)
        there = self._since_emitted(steps) if self._lasts else pl.Series("_there", steps[ROWS] > 0)
        columns = [
            self._result(steps, a).alias(name(width + k)) for k, a in enumerate(self.op.aggregates)
        ]
        return steps.select(*self.keys, H, T).with_columns(there, *columns)

    # --- rows that last: without keys there is a row from the first instant on at which the input
    # has one; many queries that run as one have such a row each

    @property
    def _lasts(self) -> bool:
        return self.op.lasting or not self.keys

    def _markers(self, hashes: pl.Series) -> pl.DataFrame | None:
        """The groups among these that have had a row before."""
        found = tables.find(self.task.stored(self._table(EMITTED)), np.unique(hashes.to_numpy()))
        return None if found is None else found.select(*self.keys, H).unique(maintain_order=True)

    def _with_markers(self, stored: pl.DataFrame | None, hashes: pl.Series) -> pl.DataFrame | None:
        """Sums that are nothing are not stored; where a row lasts, they count as nothing."""
        marked = self._markers(hashes)
        if marked is None or stored is None:
            return marked if stored is None else stored
        by = [*self.keys, H]
        return pl.concat(
            [stored, marked.join(stored, on=by, how="anti", nulls_equal=True)], how="diagonal"
        )

    def _since_emitted(self, steps: pl.DataFrame) -> pl.Series:
        """Whether each group has a row after each step, which once there stays."""
        by = [*self.keys, H]
        marked = self._markers(steps[H])
        known = steps.select(*by).with_columns(pl.lit(False).alias("_emitted"))
        if marked is not None:
            marked = marked.with_columns(pl.lit(True).alias("_emitted"))
            known = steps.select(*by).join(
                marked, on=by, how="left", nulls_equal=True, maintain_order="left"
            )
        known = known.with_columns(
            pl.col("_emitted").fill_null(False), (steps[ROWS] > 0).alias("_filled")
        )
        fresh = known.filter(pl.col("_filled") & ~pl.col("_emitted"))
        if fresh.height:
            mark = fresh.select(by).unique(maintain_order=True)
            mark = mark.with_columns(pl.lit(1, dtype=pl.Int64).alias(W))
            tables.append(self.task, self._table(EMITTED), mark, tables.merge_by(by, [W]))
        there = pl.col("_emitted") | pl.col("_filled").cum_max().over(by)
        return known.select(there.alias("_there")).to_series()

    def _result(self, steps: pl.DataFrame, call: AggCall) -> pl.Series:
        if call.arg is None:
            return steps[ROWS]
        i = self.args.index(call.arg)
        how = "d" if call.distinct else "p"
        if call.function in ("min", "max"):
            return steps[extreme_name(call.function, i)]
        prefix = sum_prefix(how, i)
        if call.function == "count":
            return steps[f"{prefix}n"]
        if call.function == "avg":
            return accumulators.mean(call.arg.type, steps, prefix)
        return accumulators.total(call.arg.type, steps, prefix, call.type)

    def _differences(self, results: pl.DataFrame) -> pl.DataFrame:
        """What each step takes back and what it says instead, where that differs."""
        width = len(self.op.types)
        columns = names(width)
        values = columns[len(self.keys) :]
        group = self.keys or [H]
        before = [pl.col(c).shift(1).over(group).alias(f"{c}_before") for c in values]
        was = pl.col("_there").shift(1).over(group).fill_null(False).alias("_was")
        steps = results.with_columns(was, *before).filter(pl.col(T) > FIRST)
        same = pl.lit(True)
        for c in values:
            same &= pl.col(c).eq_missing(pl.col(f"{c}_before"))
        steps = steps.filter((pl.col("_there") != pl.col("_was")) | (pl.col("_there") & ~same))
        forever = pl.lit(FOREVER, dtype=pl.Int64).alias(E)
        gone = steps.filter("_was").select(
            *self.keys,
            *(pl.col(f"{c}_before").alias(c) for c in values),
            T,
            forever,
            pl.lit(-1, dtype=pl.Int64).alias(W),
        )
        come = steps.filter("_there").select(
            *columns, T, forever, pl.lit(1, dtype=pl.Int64).alias(W)
        )
        return pl.concat([gone, come])
