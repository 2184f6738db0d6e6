"""Results so large that tasks sort and encode them; the driver only puts the pieces in their place.

A large emission is cut by instants into parts of about equal size. A task reads its part from the
segments that the tick's tasks have written, brings it into canonical order, and has it encoded into
a file of its own in the data directory. What of it counts, and when, is the sink's affair, as ever:
it takes the files in order, and its progress is committed with the tick.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from msgspec import structs

from thalweg.engine.shared.frames import TS
from thalweg.engine.shared.results.emission import Emission
from thalweg.engine.shared.results.results import in_order
from thalweg.engine.shared.state.folder import Folder
from thalweg.engine.shared.state.segments import Section, Segment, read_section

LARGE = 200_000  # rows that a query says in one tick
A_PART = 100_000  # rows, about

Encode = Callable[[Emission, Path], None]  # writes an emission's rows to a file; runs in tasks
Each = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]  # a task for each item


@dataclass(frozen=True, slots=True)
class Part:
    """What a query says about the instants [low, upto)."""

    query: str
    run: int
    columns: tuple[str, ...]
    files: Folder
    segments: tuple[Segment, ...]
    low: int
    upto: int

    def emission(self) -> Emission:
        frames = [_between(_read(self.files, s), self.low, self.upto) for s in self.segments]
        return Emission(self.query, self.run, self.columns, self.low, self.upto, in_order(frames))


@dataclass(frozen=True, slots=True)
class _Work:
    part: Part
    encode: Encode
    name: str


def _do(work: _Work) -> None:
    folder = encoded_in(work.part.files)
    work.encode(work.part.emission(), folder.new(work.name))
    folder.keep(work.name)


class LargeEmission(Emission):
    """An emission whose rows need not come here: `encoded` has tasks make files of them. Who wants
    the rows gets them."""

    def __init__(self, whole: Part, each: Each, merged: Callable[[], pl.DataFrame]) -> None:
        given = (whole.query, whole.run, whole.columns, whole.low, whole.upto)
        for name, value in zip(("query", "run", "columns", "low", "upto"), given, strict=True):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "mark", None)
        object.__setattr__(self, "_whole", whole)
        object.__setattr__(self, "_each", each)
        object.__setattr__(self, "_merged", merged)

    @property
    def rows(self) -> pl.DataFrame:  # type: ignore[override]
        if "_rows" not in self.__dict__:
            object.__setattr__(self, "_rows", self.__dict__["_merged"]())
        found: pl.DataFrame = self.__dict__["_rows"]
        return found

    @property
    def height(self) -> int:
        return sum(s.rows for s in self._parted.segments)

    @property
    def _parted(self) -> Part:
        found: Part = self.__dict__["_whole"]
        return found

    def encoded(self, encode: Encode) -> Iterator[tuple[Part, Path]]:
        """The parts in order, each with the file that a task has made of it, which goes after."""
        whole = self._parted
        parts = parts_of(whole)
        work = [_Work(p, encode, uuid.uuid4().hex) for p in parts]
        self.__dict__["_each"](_do, work)
        folder = encoded_in(whole.files)
        for one in work:
            yield one.part, folder.get(one.name)
            folder.remove([one.name])


def encoded_in(files: Folder) -> Folder:
    """Where tasks leave what they have encoded; nothing there is ever listed."""
    return structs.replace(files / "encoded", durable=False)


def parts_of(whole: Part) -> list[Part]:
    """Cut between instants, by those of the longest segment: an instant is never divided."""
    rows = sum(s.rows for s in whole.segments)
    longest = max(whole.segments, key=lambda s: s.rows)
    stamps = _stamps(_read(whole.files, longest))
    count = max(1, rows // A_PART)
    cuts = {int(stamps[len(stamps) * i // count]) for i in range(1, count)}
    ends = [whole.low, *sorted(c for c in cuts if c > stamps[0]), whole.upto]
    return [
        Part(whole.query, whole.run, whole.columns, whole.files, whole.segments, low, upto)
        for low, upto in pairwise(ends)
    ]


def _read(files: Folder, segment: Segment) -> pl.DataFrame:
    section = Section(segment.bundle, segment.offset, segment.size)
    return read_section(files / "results", section)


def _stamps(frame: pl.DataFrame) -> np.ndarray:
    return frame[TS].to_numpy()


def _between(frame: pl.DataFrame, low: int, upto: int) -> pl.DataFrame:
    first, last = np.searchsorted(_stamps(frame), [low, upto])
    return frame.slice(int(first), int(last - first))
