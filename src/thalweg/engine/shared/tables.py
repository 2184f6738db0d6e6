"""State tables: what operators keep between ticks, as weighted rows in sorted segments.

Every state is additive. A table's content is the sum of its segments: rows that are equal in their
key columns add up in the others, and what adds up to nothing is gone. So a tick only appends, and
segments can be merged at any time (and in any grouping) without changing what the table says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import polars as pl

from thalweg.engine.shared.frames import FOREVER, E, H, T, W, concat
from thalweg.engine.shared.segments import Mapped, Segment
from thalweg.engine.shared.task import BEGINNING, Task

FAN_IN = 8  # so many segments of about one size are merged into one
LARGEST_MERGED = 1 << 18  # rows; larger segments stay as they are


def find(segments: Iterable[Mapped], hashes: np.ndarray) -> pl.DataFrame | None:
    """All rows whose hash is among the (sorted, unique) hashes."""
    parts = []
    for mapped in segments:
        _, rows = matches(mapped.hashes, hashes)
        if len(rows):
            parts.append(mapped.frame[rows])
    return concat(parts, parts[0]) if parts else None


def matches(stored: np.ndarray, probing: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positions (probing, stored) of equal hashes; both arrays are sorted."""
    first, last = np.searchsorted(probing, (stored[0], stored[-1]), side="left")
    last = np.searchsorted(probing, stored[-1], side="right")
    probing = probing[first:last]
    if not len(probing):
        none = np.empty(0, dtype=np.int64)
        return none, none
    start = np.searchsorted(stored, probing, side="left")
    hit = np.flatnonzero(stored[np.minimum(start, len(stored) - 1)] == probing)
    start = start[hit]
    count = np.searchsorted(stored, probing[hit], side="right") - start
    ends = np.cumsum(count)
    total = int(ends[-1]) if len(ends) else 0
    within = np.arange(total) - np.repeat(ends - count, count)
    return np.repeat(hit, count) + first, np.repeat(start, count) + within


Merge = Callable[[pl.DataFrame], pl.DataFrame]


def append(
    task: Task,
    table: str,
    frame: pl.DataFrame,
    merge: Merge,
    *,
    by: str = H,
    low: str | None = None,
    high: str | None = None,
) -> None:
    """Add rows to a table, and merge its small segments when there are many of them.

    `low` and `high` name the columns whose extremes bound the segment's instants; a segment without
    them never expires.
    """
    old = _to_merge(task, table, frame.height)
    if old:
        task.forget(old)
        merged = pl.concat([*(task.read(s).frame.select(frame.columns) for s in old), frame])
        frame = merge(merged)
    if not frame.height:
        return
    frame = frame.sort(by)
    lowest = BEGINNING if low is None else int(frame[low].min())  # type: ignore[arg-type]
    highest = FOREVER if high is None else int(frame[high].max())  # type: ignore[arg-type]
    task.writer.add(table, frame, lowest, highest)


def _to_merge(task: Task, table: str, arriving: int) -> list[Segment]:
    """The segments of the arriving one's size, if they are many; then the next size up, and on."""
    mine = [s for s in task.segments_of(table) if task.may_merge(s)]
    chosen: list[Segment] = []
    size = arriving
    while size < LARGEST_MERGED:
        peers = [s for s in mine if tier(s.rows) == tier(size) and s not in chosen]
        if len(peers) < FAN_IN - 1:
            break
        chosen += peers
        size += sum(s.rows for s in peers)
    return chosen


def tier(rows: int) -> int:
    """Sizes within a factor of FAN_IN are one tier; up to 1,024 rows are the first."""
    return max(0, rows.bit_length() - 10) // (FAN_IN.bit_length() - 1)


def merge_by(keys: list[str], sums: list[str]) -> Merge:
    """Equal rows add up; rows that are zero in every sum go."""

    def merge(frame: pl.DataFrame) -> pl.DataFrame:
        added = frame.group_by(keys, maintain_order=True).agg(pl.col(c).sum() for c in sums)
        return added.filter(pl.any_horizontal(pl.col(c) != 0 for c in sums)).select(frame.columns)

    return merge


def merge_intervals(columns: list[str], frontier: int) -> Merge:
    """Interval rows of the past: when they began no longer matters, those that ended go."""

    def merge(frame: pl.DataFrame) -> pl.DataFrame:
        live = frame.filter(pl.col(E) > frontier)
        past = live.filter(pl.col(T) < frontier).with_columns(
            pl.lit(BEGINNING, dtype=pl.Int64).alias(T)
        )
        added = past.group_by([*columns, T, E, H], maintain_order=True).agg(pl.col(W).sum())
        kept = added.filter(pl.col(W) != 0).select(frame.columns)
        return pl.concat([kept, live.filter(pl.col(T) >= frontier)])

    return merge
