"""The files of results: read for sinks and readers, removed when no longer retained."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import polars as pl
from msgspec import structs

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.frames import MEMBER, OP, TS, T, concat, data_schema
from thalweg.engine.shared.state.folder import Folder
from thalweg.engine.shared.state.segments import (
    Segment,
    SegmentReader,
    file_of,
    is_beside,
    tick_of,
)

# Folders: of queries and groups, of families, and, where both are few, of state beside which they
# stand in one file.
RESULTS, PUSHED, SEGMENTS = "results", "pushed", "segments"


def located(files: Folder, segment: Segment, folder: str = RESULTS) -> tuple[Folder, Segment]:
    """Where a segment of results is, and what it is called there."""
    if not is_beside(segment.bundle):
        return files / folder, segment
    return files / SEGMENTS, structs.replace(segment, bundle=file_of(segment.bundle))


class Results:
    """The result segments of one data directory."""

    def __init__(self, files: Folder) -> None:
        self.files = files
        self.folder = files / RESULTS
        self._reader = SegmentReader()
        self._by_tick: dict[int, set[str]] | None = None  # files, once somebody has to know

    def rows(self, segments: Sequence[Segment]) -> pl.DataFrame:
        """One query's rows of one tick, from the tasks that made them."""
        return in_order(self.frames(segments))

    def group_rows(self, segments: Sequence[Segment], op: ph.Group) -> pl.DataFrame:
        """A representative's rows of one tick."""
        schema = {**data_schema(op.types), T: pl.Int64}
        return concat(self.frames(segments), pl.DataFrame(schema=schema))

    def frames(self, segments: Sequence[Segment], *, pushed: bool = False) -> list[pl.DataFrame]:
        """As tasks have made them."""
        folder = PUSHED if pushed else RESULTS
        return [self._reader.read(*located(self.files, s, folder)).frame for s in segments]

    def note(self, bundle: str) -> None:
        """A file that has come outside of a tick."""
        if self._by_tick is not None:
            self._by_tick.setdefault(tick_of(bundle), set()).add(bundle)

    def expire(self, upto: int, fresh: Iterable[str]) -> None:
        """Remove the files of all ticks up to this one; `fresh` are those that have just come.

        At every tick, so it asks neither the book nor the folder.
        """
        if self._by_tick is None:
            self._by_tick = {}
            for name in self.folder.names():
                self._by_tick.setdefault(tick_of(name), set()).add(name)
        for name in (f for f in fresh if not is_beside(f)):
            self._by_tick.setdefault(tick_of(name), set()).add(name)
        for folder in (RESULTS, PUSHED, SEGMENTS):
            self._reader.keep_only(self.files / folder, set())  # the sinks have had them
        for tick in [t for t in self._by_tick if t <= upto]:
            self.folder.remove(self._by_tick.pop(tick))

    def keep_only(self, bundles: set[str]) -> None:
        """Remove all other files: what a tick that failed has left behind."""
        self._reader.keep_only(self.folder, bundles)
        self.folder.sweep(bundles)


def in_member_order(frames: Sequence[pl.DataFrame]) -> pl.DataFrame | None:
    """A family's rows from several tasks, each of which has them in order; None: no rows."""
    if len(frames) < 2:
        return frames[0] if frames else None
    columns = [c for c in frames[0].columns if c not in (MEMBER, TS, OP)]
    return pl.concat(frames).sort(MEMBER, TS, OP, *columns, nulls_last=False)


def in_order(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Rows of one query from several tasks, each of which has them in order."""
    if len(frames) == 1:
        return frames[0]
    columns = [c for c in frames[0].columns if c not in (TS, OP)]
    return pl.concat(frames).sort(TS, OP, *columns, nulls_last=False)
