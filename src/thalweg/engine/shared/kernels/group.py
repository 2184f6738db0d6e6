"""A group's representative: rows that start in this tick, and rows that end for some member.

What is kept are interval rows, not netted, with the timestamp of every tuple that made them. When
a row ends depends on a member's windows: of the rows that started before this tick, those are
given that end now by the windows of at least one member.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np
import polars as pl

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.expressions.translate import to_polars
from thalweg.engine.shared.frames import E, H, T, concat, names
from thalweg.engine.shared.groups.families import Family, Lengths, ends_of, member_events
from thalweg.engine.shared.state import tables
from thalweg.engine.shared.state.folder import Folder
from thalweg.engine.shared.state.hashing import with_hash
from thalweg.engine.shared.state.loaded import Loaded
from thalweg.engine.shared.state.segments import Mapped
from thalweg.engine.shared.tick.messages import PLANS
from thalweg.engine.shared.tick.plan import Flow
from thalweg.engine.shared.tick.task import Task


def group(
    task: Task, flow: Flow, op: ph.Group, windows: Iterable[Lengths]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """(started, ended), each `c…`, `_t`; `windows` are the members' different ones."""
    delta = task.evaluate(flow, op.input)
    started = delta.select(*names(len(op.types)), T)
    if not op.keeps_ends:
        return started, started.clear()
    # Groups whose aggregates differ may have one representative, and then one state of it.
    once = ("live", flow.name, task.plan.name_of(op))
    live = task.once(once, lambda: _live(task, flow, op, delta))
    windows = list(windows)
    ended = [_ending(task, flow, op, mapped, windows) for mapped in live]
    return started, concat(ended, started)


def matches(task: Task, flow: Flow, op: ph.Matches) -> pl.DataFrame:
    spec = task.spec.groups[op.name]
    assert spec.families is not None
    started, ended = group(task, flow, op.input, spec.windows)
    (family,) = load_families(task.spec.files, spec.families)
    return member_events(family, started, ended, *task.range_of(flow))


_families: Loaded[list[Family]] = Loaded()


def load_families(files: Folder, name: str) -> list[Family]:
    return _families.load(files / PLANS, name)


def keep_families(files: Folder, names: Collection[str]) -> None:
    """Forget those of groups that are no more."""
    _families.keep_only(files / PLANS, names)


def _live(task: Task, flow: Flow, op: ph.Group, delta: pl.DataFrame) -> list[Mapped]:
    """What was remembered before this tick; what starts in it is remembered from now on."""
    table = task.state_table(flow, op, "live")
    stored = list(task.stored(table))
    _remember(task, op, table, delta, task.range_of(flow)[1])
    return stored


def _ending(
    task: Task, flow: Flow, op: ph.Group, mapped: Mapped, windows: list[Lengths]
) -> pl.DataFrame:
    low, high = task.range_of(flow)
    width = len(op.types)
    stamps = [mapped.array(c) for c in names(width)[width - len(op.slides) :]]
    start = mapped.array(T)
    due = np.zeros(len(start), dtype=bool)
    for lengths in windows:
        end = ends_of(stamps, lengths, op.slides)
        due |= (end >= low) & (end < high) & (start < end)
    if not task.is_alone:
        due &= (mapped.hashes >= task.low) & (mapped.hashes <= task.high)
    return mapped.frame[np.flatnonzero(due)].select(*names(width), T)


def _remember(task: Task, op: ph.Group, table: str, delta: pl.DataFrame, high: int) -> None:
    """Rows that reach beyond this tick by the representative's windows, the loosest of all."""
    later = delta.filter(pl.col(E) >= high)
    if not later.height:
        return
    assert op.input.keys is not None
    keyed = with_hash(later, [to_polars(k) for k in op.input.keys])
    keyed = keyed.select(*names(len(op.types)), T, E, H)
    tables.append(task, table, keyed, lambda f: f.filter(pl.col(E) >= high), by=E, low=T, high=E)
