"""State tables: what operators keep between ticks, as weighted rows in sorted segments.

Every state is additive. A table's content is the sum of its segments: rows that are equal in their
key columns add up in the others, and what adds up to nothing is gone. So a tick only appends, and
segments can be merged at any time (and in any grouping) without changing what the table says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import polars as pl

from thalweg.engine.shared.frames import FOREVER, E, H, T, W, aligned, concat
from thalweg.engine.shared.state.names import Table
from thalweg.engine.shared.state.segments import Mapped, Segment
from thalweg.engine.shared.tick.task import Task
from thalweg.plan.windows import BEGINNING

FAN_IN = 8  # so many segments of about one size are merged into one
LARGEST_MERGED = 1 << 17  # rows; larger segments are quick enough to search as they are
PAIRS_AT_ONCE = 1 << 17  # a probe that matches more is done in pieces, to bound memory


def find(segments: Iterable[Mapped], hashes: np.ndarray) -> pl.DataFrame | None:
    """All rows whose hash is among the (sorted, unique) hashes."""
    parts = [
        mapped.frame[rows] for mapped in segments for _, rows in matches(mapped.hashes, hashes)
    ]
    return concat(parts, parts[0]) if parts else None


def matches(stored: np.ndarray, probing: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Positions (probing, stored) of equal hashes, in pieces; both arrays are sorted."""
    first = int(np.searchsorted(probing, stored[0], side="left"))
    last = int(np.searchsorted(probing, stored[-1], side="right"))
    probing = probing[first:last]
    if not len(probing):
        return
    start = np.searchsorted(stored, probing, side="left")
    hit = np.flatnonzero(stored[np.minimum(start, len(stored) - 1)] == probing)
    if not len(hit):
        return
    start = start[hit]
    count = np.searchsorted(stored, probing[hit], side="right") - start
    yield from pairs(hit + first, start, count)


def pairs(
    probing: np.ndarray, start: np.ndarray, count: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Each probing row with `count` stored ones from `start` on, in pieces."""
    ends = np.cumsum(count)
    done, passed = 0, 0
    while done < len(probing):
        # As many probes as give PAIRS_AT_ONCE, but at least one.
        upto = max(done + 1, int(np.searchsorted(ends, passed + PAIRS_AT_ONCE, side="right")))
        of, begin = count[done:upto], start[done:upto]
        before = np.cumsum(of) - of
        within = np.arange(int(ends[upto - 1]) - passed) - np.repeat(before, of)
        yield np.repeat(probing[done:upto], of), np.repeat(begin, of) + within
        done, passed = upto, int(ends[upto - 1])


Merge = Callable[[pl.DataFrame], pl.DataFrame]


def append(
    task: Task,
    table: Table,
    frame: pl.DataFrame,
    merge: Merge,
    *,
    by: str = H,
    low: str | None = None,
    high: str | None = None,
    widens: bool = False,
) -> None:
    """Add rows to a table, and merge its small segments when there are many of them.

    `low` and `high` name the columns whose extremes bound the segment's instants; a segment without
    them never expires. Where a table `widens`, segments may have columns that others lack.
    """
    old = _to_merge(task, table, frame.height)
    if old:
        task.forget(old)
        stored = [task.read(s).frame for s in old]
        if widens:
            frame = merge(pl.concat([*stored, frame], how="diagonal"))
        else:
            frame = merge(pl.concat([*(aligned(f, frame) for f in stored), frame]))
    if not frame.height:
        return
    frame = frame.sort(by)
    lowest = BEGINNING if low is None else int(frame[low].min())  # type: ignore[arg-type]
    highest = FOREVER if high is None else int(frame[high].max())  # type: ignore[arg-type]
    task.writer.add(table, frame, lowest, highest)


def _to_merge(task: Task, table: Table, arriving: int) -> list[Segment]:
    """The segments of the arriving one's size, if they are many; then the next size up, and on."""
    most = task.spec.most_merged
    mine = [s for s in task.segments_of(table) if task.may_merge(s)]
    mine = mine if most is None else [s for s in mine if s.size <= most]
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
