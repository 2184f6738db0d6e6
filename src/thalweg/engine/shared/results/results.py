"""The files of results: read for sinks and readers, removed when no longer retained."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import polars as pl

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.frames import MEMBER, OP, TS, T, concat, data_schema
from thalweg.engine.shared.state.folder import Folder
from thalweg.engine.shared.state.segments import Segment, SegmentReader

RESULTS, PUSHED = "results", "pushed"  # folders: of queries and groups, of families


class Results:
    """The result segments of one data directory."""

    def __init__(self, files: Folder) -> None:
        self.files = files
        self.folder, self._pushed = files / RESULTS, files / PUSHED
        self._reader = SegmentReader()
        self._by_tick: dict[int, set[str]] | None = None  # files, once somebody has to know

    def rows(self, segments: Sequence[Segment]) -> pl.DataFrame:
        """One query's rows of one tick, from the tasks that made them."""
        return in_order([self._reader.read(self.folder, s).frame for s in segments])

    def group_rows(self, segments: Sequence[Segment], op: ph.Group) -> pl.DataFrame:
        """A representative's rows of one tick."""
        schema = {**data_schema(op.types), T: pl.Int64}
        return concat(
            [self._reader.read(self.folder, s).frame for s in segments], pl.DataFrame(schema=schema)
        )

    def frames(self, segments: Sequence[Segment], *, pushed: bool) -> list[pl.DataFrame]:
        """As tasks have made them."""
        folder = self._pushed if pushed else self.folder
        return [self._reader.read(folder, s).frame for s in segments]

    def note(self, bundle: str) -> None:
        """A file that has come outside of a tick."""
        if self._by_tick is not None:
            self._by_tick.setdefault(_tick_of(bundle), set()).add(bundle)

    def expire(self, upto: int, fresh: Iterable[str]) -> None:
        """Remove the files of all ticks up to this one; `fresh` are those that have just come.

        At every tick, so it asks neither the book nor the folder.
        """
        if self._by_tick is None:
            self._by_tick = {}
            for name in self.folder.names():
                self._by_tick.setdefault(_tick_of(name), set()).add(name)
        for name in fresh:
            self._by_tick.setdefault(_tick_of(name), set()).add(name)
        for folder in (self.folder, self._pushed):
            self._reader.keep_only(folder, set())  # the sinks have had them
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


def _tick_of(bundle: str) -> int:
    return int(bundle.split("-", 1)[0])
