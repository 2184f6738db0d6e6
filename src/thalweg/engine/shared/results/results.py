"""Results: what queries said, tick by tick, kept for readers that come back.

A result row's id is (tick, index within the tick), the same whenever the tick is run. Readers ask
for what follows an id; sinks get each tick's emissions and keep their own progress.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Protocol

import numpy as np
import polars as pl

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.frames import OP, TS, T, concat, data_schema
from thalweg.engine.shared.groups.families import MEMBER
from thalweg.engine.shared.state.segments import Segment, SegmentReader


@dataclass(frozen=True)
class Emission:
    """What one query says in one tick: `_ts`, `_op` (+1, -1), `c0`, …, in canonical order."""

    query: str
    tick: int
    columns: tuple[str, ...]  # the names of c0, c1, …
    rows: pl.DataFrame


@dataclass(frozen=True)
class FamilyEmission:
    """What the members of a family say in one tick: an `Emission` of all of them in one frame,
    which has in `_m` a member's place among `members`, and is sorted by it."""

    tick: int
    members: tuple[str, ...]
    columns: tuple[tuple[str, ...], ...]  # each member's own names of c0, c1, …
    rows: pl.DataFrame

    def each(self) -> Iterator[Emission]:
        """Member by member; nothing is copied."""
        places = self.rows[MEMBER].to_numpy()
        starts = np.flatnonzero(np.diff(places, prepend=-1, append=-1)) if len(places) else []
        rows = self.rows.drop(MEMBER)
        for first, last in pairwise(starts):
            member = int(places[first])
            part = rows.slice(int(first), int(last - first))
            yield Emission(self.members[member], self.tick, self.columns[member], part)


def one_by_one(emissions: Iterable[Emission | FamilyEmission]) -> Iterator[Emission]:
    for emission in emissions:
        if isinstance(emission, FamilyEmission):
            yield from emission.each()
        else:
            yield emission


class Outlet(Protocol):
    """Takes emissions; of a group's members only those that it wants are made.

    `progress` is committed with the tick, so that after a crash the outlet can drop what it has
    already taken: a tick that is repeated repeats its emissions.
    """

    def wants(self, query: str) -> bool: ...

    def deliver(self, emissions: Sequence[Emission | FamilyEmission]) -> None: ...

    def progress(self) -> Mapping[str, bytes]: ...


class NoOutlet:
    """For engines whose results are only read back."""

    def wants(self, query: str) -> bool:
        return False

    def deliver(self, emissions: Sequence[Emission | FamilyEmission]) -> None:
        pass

    def progress(self) -> Mapping[str, bytes]:
        return {}


class Results:
    """The result segments of one data directory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "results"
        self.folder.mkdir(exist_ok=True)
        self._reader = SegmentReader()
        self._by_tick: dict[int, set[str]] | None = None  # files, once somebody has to know

    def rows(self, segments: Sequence[Segment]) -> pl.DataFrame:
        """One query's rows of one tick, from the tasks that made them."""
        frames = [self._reader.read(self.folder, s).frame for s in segments]
        if len(frames) == 1:
            return frames[0]
        columns = [c for c in frames[0].columns if c not in (TS, OP)]
        return pl.concat(frames).sort(TS, OP, *columns, nulls_last=False)

    def group_rows(self, segments: Sequence[Segment], op: ph.Group) -> pl.DataFrame:
        """A representative's rows of one tick."""
        schema = {**data_schema(op.types), T: pl.Int64}
        return concat(
            [self._reader.read(self.folder, s).frame for s in segments], pl.DataFrame(schema=schema)
        )

    def pushed_rows(self, segments: Sequence[Segment]) -> pl.DataFrame | None:
        """A family's rows of one tick, from the tasks that made them."""
        folder = self.folder.parent / "pushed"
        frames = [self._reader.read(folder, s).frame for s in segments]
        if len(frames) < 2:
            return frames[0] if frames else None
        columns = [c for c in frames[0].columns if c not in (MEMBER, TS, OP)]
        return pl.concat(frames).sort(MEMBER, TS, OP, *columns, nulls_last=False)

    def emissions(
        self, number: int, segments: Sequence[Segment], columns: Mapping[str, tuple[str, ...]]
    ) -> list[Emission]:
        """One tick's segments by query, in order of name."""
        parts: dict[str, list[Segment]] = {}
        for segment in segments:
            parts.setdefault(segment.table, []).append(segment)
        return [
            Emission(query, number, columns[query], self.rows(parts[query]))
            for query in sorted(parts)
            if query in columns
        ]

    def expire(self, upto: int, fresh: Iterable[str]) -> None:
        """Remove the files of all ticks up to this one; `fresh` are those that have just come.

        At every tick, so it asks neither the book nor the folder.
        """
        if self._by_tick is None:
            self._by_tick = {}
            for path in self.folder.iterdir():
                self._by_tick.setdefault(_tick_of(path.name), set()).add(path.name)
        for name in fresh:
            self._by_tick.setdefault(_tick_of(name), set()).add(name)
        for folder in (self.folder, self.folder.parent / "pushed"):
            self._reader.keep_only(folder, set())  # the sinks have had them
        for tick in [t for t in self._by_tick if t <= upto]:
            for name in self._by_tick.pop(tick):
                (self.folder / name).unlink(missing_ok=True)

    def keep_only(self, bundles: set[str]) -> None:
        """Remove all other files: what a tick that failed has left behind."""
        self._reader.keep_only(self.folder, bundles)
        for path in self.folder.iterdir():
            if path.name not in bundles:
                path.unlink(missing_ok=True)


def _tick_of(bundle: str) -> int:
    return int(bundle.split("-", 1)[0])
