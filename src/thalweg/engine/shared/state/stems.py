"""SteMs of base streams: window contents, indexed by a key, shared by every query that joins on it.

At each tick the new tuples of a stream are hashed and sorted once per key, and appended to that
key's SteM as a segment; each task writes the rows whose hash it owns. Probes see the segments of
earlier ticks and the new tuples alike.
"""

from __future__ import annotations

import polars as pl

from thalweg.engine.shared.expressions.translate import to_polars
from thalweg.engine.shared.frames import FOREVER, POS, TS, H, aligned, between, concat
from thalweg.engine.shared.state import tables
from thalweg.engine.shared.state.hashing import with_hash
from thalweg.engine.shared.state.names import stem_table
from thalweg.engine.shared.state.segments import Mapped
from thalweg.engine.shared.tick.task import Task
from thalweg.plan.expr import Expr
from thalweg.plan.windows import BEGINNING


def new_tuples(task: Task, stream: str, keys: tuple[Expr, ...]) -> Mapped:
    """The stream's landed tuples, all of them, sorted by the hash of the keys."""
    hashed = _new_hashed(task, stream, keys)
    return task.once(("new", stream, keys), lambda: Mapped(hashed.sort(H)))


def own_new_tuples(task: Task, stream: str, keys: tuple[Expr, ...]) -> Mapped:
    """Those of them that this task stores, and that alone can meet rows of its own hashes."""
    if task.is_alone:
        return new_tuples(task, stream, keys)
    hashed = _new_hashed(task, stream, keys)
    return task.once(("own", stream, keys), lambda: Mapped(hashed.filter(task.owns_hash()).sort(H)))


def _new_hashed(task: Task, stream: str, keys: tuple[Expr, ...]) -> pl.DataFrame:
    return task.once(("hashed", stream, keys), lambda: _hashed(task.landed(stream), keys))


def _hashed(frame: pl.DataFrame, keys: tuple[Expr, ...]) -> pl.DataFrame:
    by = [to_polars(k) for k in keys] or [pl.col(POS)]  # the plain log spreads evenly over tasks
    return with_hash(frame, by)


def own_between(
    task: Task, stream: str, keys: tuple[Expr, ...], low: int, high: int
) -> pl.DataFrame | None:
    """All tuples with low <= timestamp < high whose hash this task owns, with `_h`; None where no
    SteM has them by these keys."""
    if not keys or keys not in task.plan.stems[stream] or _is_fresh(task, stream, keys):
        return None
    of = ("own between", stream, keys, low, high)
    return task.once(of, lambda: _own_between(task, stream, keys, low, high))


def _own_between(
    task: Task, stream: str, keys: tuple[Expr, ...], low: int, high: int
) -> pl.DataFrame:
    fresh = own_new_tuples(task, stream, keys).frame
    parts = []
    for mapped in task.stored_between(stem_table(stream, keys), low, high):
        segment = mapped.segment
        assert segment is not None
        frame = aligned(mapped.frame, fresh)
        frame = frame if task.may_merge(segment) else frame.filter(task.owns_hash())
        is_inside = low <= segment.low and segment.high < high
        parts.append(frame if is_inside else between(frame, low, high))
    parts.append(between(fresh, low, high))
    return concat(parts, fresh)


def _is_fresh(task: Task, stream: str, keys: tuple[Expr, ...]) -> bool:
    """Whether the SteM is written in this tick only."""
    return stem_table(stream, keys) in task.spec.backfill.get(stream, ("", []))[1]


def stem_segments(
    task: Task, stream: str, keys: tuple[Expr, ...], since: int, before: int, *, own: bool
) -> list[Mapped]:
    """Segments with tuples of [since, before), and the new tuples; `own`: only hashes that this
    task owns are looked for."""
    if not keys:
        # A join without a key: everything meets everything, under one hash.
        return _everything(task, stream, since, before)
    if _is_fresh(task, stream, keys):
        found = reindexed(task, stream, keys)
    else:
        stored = task.stored_between(stem_table(stream, keys), since, before)
        found = [_whole(task, stream, m) for m in stored]
    fresh = (own_new_tuples if own else new_tuples)(task, stream, keys)
    return [*found, fresh] if fresh.frame.height else found


def _whole(task: Task, stream: str, mapped: Mapped) -> Mapped:
    """A segment with all columns: it may be older than one that the stream was given later."""
    schema = task.stream_schema(stream)
    missing = [c for c in schema if c not in mapped.frame.columns]
    if not missing or mapped.segment is None:
        return mapped
    nulls = [pl.lit(None, dtype=schema[c]).alias(c) for c in missing]
    key = ("whole", stream, mapped.segment.key)
    return task.once(key, lambda: Mapped(mapped.frame.with_columns(nulls), mapped.segment))


def _everything(task: Task, stream: str, since: int, before: int) -> list[Mapped]:
    stored = task.stored_between(task.log_table(stream), since, before)
    frames = [*(_whole(task, stream, m).frame for m in stored), task.landed(stream)]
    zero = pl.lit(0, dtype=pl.UInt64).alias(H)
    return [Mapped(f.with_columns(zero)) for f in frames if f.height]


def reindexed(task: Task, stream: str, keys: tuple[Expr, ...]) -> list[Mapped]:
    """The stored tuples under a key by which they are not stored yet."""

    def make() -> list[Mapped]:
        # A tuple that was stored without the key gets NULL for it: it lies behind the horizon of
        # whoever joins by this key, but others still need it.
        like = task.landed(stream)
        stored = [aligned(m.frame, like) for m in task.stored(task.spec.backfill[stream][0])]
        return [Mapped(_hashed(f, keys).sort(H)) for f in stored]

    return task.once(("reindexed", stream, keys), make)


def store(task: Task, stream: str) -> None:
    """Append the new tuples that this task owns to each of the stream's SteMs."""
    floor = task.spec.floors.get(stream, BEGINNING)
    landed = task.landed(stream)
    if landed.height:
        task.report.oldest[stream] = int(landed[TS].min())  # type: ignore[arg-type]
    for keys in task.plan.stems[stream]:
        mine = between(own_new_tuples(task, stream, keys).frame, floor, FOREVER)
        if mine.height:
            tables.append(
                task, stem_table(stream, keys), mine, _still_needed(floor), low=TS, high=TS
            )


def backfill(task: Task, stream: str) -> None:
    """Write the SteMs that are new, from one that has been there."""
    floor = task.spec.floors.get(stream, BEGINNING)
    for keys in task.plan.stems[stream]:
        table = stem_table(stream, keys)
        if table not in task.spec.backfill[stream][1]:
            continue
        for mapped in reindexed(task, stream, keys):
            frame = mapped.frame if task.is_alone else mapped.frame.filter(task.owns_hash())
            mine = frame.filter(pl.col(TS) >= floor)
            if mine.height:
                tables.append(task, table, mine, _still_needed(floor), low=TS, high=TS)


def _still_needed(floor: int) -> tables.Merge:
    return lambda frame: frame.filter(pl.col(TS) >= floor)
