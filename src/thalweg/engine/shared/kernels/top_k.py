"""ORDER BY … LIMIT k: the first k rows at every instant.

All rows in question, stored and new, are numbered in their order once; then time is followed event
by event over these numbers. What was shown before a tick follows from what is stored.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from itertools import pairwise

import numpy as np
import polars as pl

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.expressions.translate import to_polars
from thalweg.engine.shared.frames import FOREVER, E, H, T, W, dtype, empty_relation, names, net
from thalweg.engine.shared.kernels.expiry import events
from thalweg.engine.shared.kernels.running import FIRST
from thalweg.engine.shared.state import tables
from thalweg.engine.shared.state.hashing import with_hash
from thalweg.engine.shared.state.names import Table
from thalweg.engine.shared.tick.plan import Flow
from thalweg.engine.shared.tick.task import Task

RANK, PARTITION = "_rank", "_partition"


def top_k(task: Task, flow: Flow, op: ph.TopK) -> pl.DataFrame:
    columns = names(len(op.types))
    assert op.input.keys is not None
    happened = net(events(task, flow, op, op.input, "ends"), [*columns, T])
    if not happened.height:
        return empty_relation(op.types)
    happened = with_hash(happened, [to_polars(k) for k in op.input.keys])
    happened = happened.select(*columns, H, T, W)
    table = task.state_table(flow, op)
    ranked = _ranked(_with_stored(task, table, happened, columns), op, columns)
    rows = ranked.unique(RANK).sort(RANK).select(*columns, H)  # a row's number is its place
    ranks, instants, weights = _along_time(ranked, op.count)
    changes = rows[ranks].with_columns(pl.Series(T, instants), pl.Series(W, weights))
    # Where no row ever leaves, what is not among the first now never will be.
    _store(task, table, columns, changes if op.grows else happened)
    return changes.select(*columns, T, pl.lit(FOREVER, dtype=pl.Int64).alias(E), W)


def _with_stored(
    task: Task, table: Table, happened: pl.DataFrame, columns: list[str]
) -> pl.DataFrame:
    """With the rows of the partitions in which something happens, as if they came at FIRST."""
    found = tables.find(task.stored(table), np.unique(happened[H].to_numpy()))
    if found is None:
        return happened
    there = found.group_by([*columns, H]).agg(pl.col(W).sum()).filter(pl.col(W) != 0)
    first = there.with_columns(pl.lit(FIRST, dtype=pl.Int64).alias(T))
    return pl.concat([first.select(happened.columns), happened])


def _ranked(rows: pl.DataFrame, op: ph.TopK, columns: list[str]) -> pl.DataFrame:
    """Each row's place in the order of partitions, keys and columns; equal rows have one place."""
    assert op.input.keys is not None
    parts = [f"_p{i}" for i in range(len(op.input.keys))]
    keys = [f"_k{i}" for i in range(len(op.keys))]
    exprs = [*op.input.keys, *(k.expr for k in op.keys)]
    added = [
        to_polars(e).cast(dtype(e.type)).alias(n) for e, n in zip(exprs, parts + keys, strict=True)
    ]
    plain = [False] * len(columns)
    ordered = rows.with_columns(added).sort(
        [*parts, *keys, *columns],
        descending=[*([False] * len(parts)), *(k.descending for k in op.keys), *plain],
        nulls_last=[*([False] * len(parts)), *(k.nulls_last for k in op.keys), *plain],
    )
    partition = pl.struct(parts).rle_id() if parts else pl.lit(0, dtype=pl.UInt32)
    # Partitions are told apart by what their expressions say, which is a matter of the columns.
    return ordered.with_columns(
        pl.struct(columns).rle_id().alias(RANK), partition.alias(PARTITION)
    ).drop(parts + keys)


def _along_time(ranked: pl.DataFrame, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What comes and goes among the first rows: their numbers, when, and how often."""
    ordered = ranked.select(PARTITION, T, RANK, W).sort(PARTITION, T, RANK)
    partition, instant, rank, weight = (ordered[c].to_numpy() for c in ordered.columns)
    turns = (np.diff(partition) != 0) | (np.diff(instant) != 0)
    starts = [0, *(np.flatnonzero(turns) + 1).tolist(), len(rank)]
    ends = _last_of(partition)
    ranks: list[int] = []
    instants: list[int] = []
    weights: list[int] = []
    top = _First(count)
    for begin, end in pairwise(starts):
        if begin == 0 or partition[begin] != partition[begin - 1]:
            top = _First(count)
            if instant[begin] == FIRST:
                rest = slice(end, int(ends[begin]))
                top.start(rank[begin:end], weight[begin:end], rank[rest], weight[rest])
                continue
        for place, change in top.take(rank[begin:end].tolist(), weight[begin:end].tolist()):
            ranks.append(place)
            instants.append(int(instant[begin]))
            weights.append(change)
    return tuple(np.array(found, dtype=np.int64) for found in (ranks, instants, weights))  # type: ignore[return-value]


def _last_of(values: np.ndarray) -> np.ndarray:
    """For each place, where the run of equal values ends that it is in."""
    return np.searchsorted(values, values, side="right")


class _First:
    """The rows of one partition, by their numbers, and which of them are shown."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._present: list[int] = []  # in order
        self._copies: dict[int, int] = {}
        self._shown: dict[int, int] = {}
        self._last: int | None = None  # the last one that is shown, where all places are taken

    def start(
        self, ranks: np.ndarray, copies: np.ndarray, coming: np.ndarray, changes: np.ndarray
    ) -> None:
        """With what is stored, as far as it can matter to the changes that are to come.

        Each row that goes lets one in that was behind: so many may be needed, and no more.
        """
        needed = self._count - int(changes[changes < 0].sum())
        kept = (np.arange(len(ranks)) < needed) | np.isin(ranks, coming)
        self._present = ranks[kept].tolist()
        self._copies = dict(zip(self._present, copies[kept].tolist(), strict=True))
        self._show()

    def take(self, ranks: list[int], changes: list[int]) -> list[tuple[int, int]]:
        """What an instant's changes do to what is shown."""
        for rank, change in zip(ranks, changes, strict=True):
            before = self._copies.get(rank, 0)
            after = before + change
            if after:
                self._copies[rank] = after
                if not before:
                    insort(self._present, rank)
            else:
                del self._copies[rank]
                del self._present[bisect_left(self._present, rank)]
        if self._last is not None and min(ranks) > self._last:
            return []
        old = self._shown
        self._show()
        new = self._shown
        places = sorted(old.keys() | new.keys())
        changed = ((place, new.get(place, 0) - old.get(place, 0)) for place in places)
        return [(place, change) for place, change in changed if change]

    def _show(self) -> None:
        shown: dict[int, int] = {}
        left = self._count
        for rank in self._present:
            shown[rank] = min(self._copies[rank], left)
            left -= shown[rank]
            if not left:
                break
        self._shown = shown
        self._last = rank if not left else None


def _store(task: Task, table: Table, columns: list[str], changes: pl.DataFrame) -> None:
    by = [*columns, H]
    total = changes.group_by(by, maintain_order=True).agg(pl.col(W).sum()).filter(pl.col(W) != 0)
    if total.height:
        tables.append(task, table, total, tables.merge_by(by, [W]))
