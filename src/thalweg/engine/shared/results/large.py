"""Results so large that tasks sort and encode them; the driver only puts the pieces in their place.

A large emission is cut by instants into parts of about equal size. A task reads its part from the
segments that the tick's tasks have written, brings it into canonical order, and has it encoded into
a file of its own in the data directory. What of it counts, and when, is the sink's affair, as ever:
it takes the files in order, and its progress is committed with the tick.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from msgspec import structs

from thalweg.engine.shared.frames import MEMBER, TS
from thalweg.engine.shared.groups.families import of_member
from thalweg.engine.shared.results.emission import Emission
from thalweg.engine.shared.results.results import PUSHED, RESULTS, in_order, located
from thalweg.engine.shared.state.folder import Folder
from thalweg.engine.shared.state.segments import Section, Segment, read_section

LARGE = 200_000  # rows that a query says in one tick
A_PART = 100_000  # rows, about

NO_MEMBER = -1

Encode = Callable[[Emission, Path], None]  # writes an emission's rows to a file; runs in tasks
Each = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]  # a task for each item


@dataclass(frozen=True, slots=True)
class Part:
    """What a query says about the instants [low, upto). A family's member has its place there:
    tasks have written its rows beside others', by member (`pushed`) or as an aggregate's."""

    query: str
    run: int
    columns: tuple[str, ...]
    files: Folder
    segments: tuple[Segment, ...]
    low: int
    upto: int
    member: int = NO_MEMBER
    is_pushed: bool = False

    def read(self, segment: Segment) -> pl.DataFrame:
        """What a segment has of it, in order, whatever the instants."""
        folder, found = located(self.files, segment, PUSHED if self.is_pushed else RESULTS)
        frame = read_section(folder, Section(found.bundle, found.offset, found.size))
        if self.member == NO_MEMBER:
            return frame
        if not self.is_pushed:
            return of_member(frame, self.member)
        first, last = np.searchsorted(frame[MEMBER].to_numpy(), [self.member, self.member + 1])
        return frame.slice(int(first), int(last - first)).drop(MEMBER)

    def emission(self) -> Emission:
        frames = [_between(self.read(s), self.low, self.upto) for s in self.segments]
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

    def __init__(self, whole: Part, each: Each, height: int) -> None:
        given = (whole.query, whole.run, whole.columns, whole.low, whole.upto)
        for name, value in zip(("query", "run", "columns", "low", "upto"), given, strict=True):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "mark", None)
        object.__setattr__(self, "_whole", whole)
        object.__setattr__(self, "_each", each)
        object.__setattr__(self, "_height", height)

    @property
    def rows(self) -> pl.DataFrame:  # type: ignore[override]
        if "_rows" not in self.__dict__:
            object.__setattr__(self, "_rows", self._parted.emission().rows)
        found: pl.DataFrame = self.__dict__["_rows"]
        return found

    @property
    def height(self) -> int:
        found: int = self.__dict__["_height"]
        return found

    @property
    def _parted(self) -> Part:
        found: Part = self.__dict__["_whole"]
        return found

    def encoded(self, encode: Encode) -> Iterator[tuple[Part, Path]]:
        """The parts in order, each with the file that a task has made of it; all go at the end."""
        with self.left_there(lambda _: encode) as (folder, made):
            for part, name in made:
                yield part, folder.get(name)

    @contextmanager
    def left_there(
        self, encode: Callable[[Part], Encode]
    ) -> Iterator[tuple[Folder, list[tuple[Part, str]]]]:
        """The same, for other tasks: the files stay where they are until this ends."""
        folder = encoded_in(self._parted.files)
        work = [_Work(p, encode(p), uuid.uuid4().hex) for p in parts_of(self._parted)]
        try:
            self.__dict__["_each"](_do, work)
            yield folder, [(one.part, one.name) for one in work]
        finally:
            folder.remove(one.name for one in work)


def encoded_in(files: Folder) -> Folder:
    """Where tasks leave what they have encoded; nothing there is ever listed."""
    return structs.replace(files / "encoded", durable=False)


def parts_of(whole: Part) -> list[Part]:
    """Cut between instants, by those of the longest segment: an instant is never divided."""
    stamps = [whole.read(s)[TS].to_numpy() for s in whole.segments]
    count = max(1, sum(map(len, stamps)) // A_PART)
    longest = max(stamps, key=len)
    cuts = {int(longest[len(longest) * i // count]) for i in range(1, count)}
    ends = [whole.low, *sorted(c for c in cuts if c > longest[0]), whole.upto]
    return [replace(whole, low=low, upto=upto) for low, upto in pairwise(ends)]


def _between(frame: pl.DataFrame, low: int, upto: int) -> pl.DataFrame:
    first, last = np.searchsorted(frame[TS].to_numpy(), [low, upto])
    return frame.slice(int(first), int(last - first))
