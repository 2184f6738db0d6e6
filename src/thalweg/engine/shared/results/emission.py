"""What queries say, tick by tick, on its way to whoever listens.

An emission is about the instants [low, upto): all that the query says about them, so that `upto` is
how far its result is final, its frontier. A query that has nothing to say still has a frontier, and
an emission without rows says it.

A row's id is (run, instant, ordinal): the query's creation number, and the row's place among those
of its instant. It does not depend on ticks, nor on who has computed the row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
import polars as pl

from thalweg.engine.shared.frames import MEMBER, OP, TS
from thalweg.engine.shared.state.store import Store

NO_ROWS = pl.DataFrame(schema={TS: pl.Int64, OP: pl.Int8})


@dataclass(frozen=True)
class EndMark:
    """Behind these rows, this version of the query has ended; `instant` is the first about which
    its successor speaks."""

    version: int
    instant: int


@dataclass(frozen=True)
class Emission:
    """What one query says in one tick: `_ts`, `_op` (+1, -1), `c0`, …, in canonical order."""

    query: str
    run: int
    columns: tuple[str, ...]  # the names of c0, c1, …
    low: int
    upto: int
    rows: pl.DataFrame
    mark: EndMark | None = None

    @property
    def height(self) -> int:
        """How many rows."""
        return self.rows.height

    def ordinals(self) -> np.ndarray:
        """Each row's place among those of its instant."""
        return ordinals(self.rows[TS].to_numpy())


@dataclass(frozen=True)
class FamilyEmission:
    """What the members of a family say in one tick: an `Emission` of all of them in one frame,
    which has in `_m` a member's place among `members`, and is sorted by it."""

    members: tuple[str, ...]
    runs: tuple[int, ...]
    columns: tuple[tuple[str, ...], ...]  # each member's own names of c0, c1, …
    low: int
    upto: int
    rows: pl.DataFrame

    @property
    def height(self) -> int:
        return self.rows.height

    def each(self) -> Iterator[Emission]:
        """Member by member, those that have rows; nothing is copied."""
        places = self.rows[MEMBER].to_numpy()
        starts = np.flatnonzero(np.diff(places, prepend=-1, append=-1)) if len(places) else []
        rows = self.rows.drop(MEMBER)
        for first, last in pairwise(starts):
            member = int(places[first])
            part = rows.slice(int(first), int(last - first))
            yield Emission(
                self.members[member],
                self.runs[member],
                self.columns[member],
                self.low,
                self.upto,
                part,
            )


@dataclass(frozen=True)
class TickOutput:
    """All that a tick says; `quiet` gives the emission of a query that has no rows in it, None for
    one that the tick was not about."""

    tick: int
    emissions: Sequence[Emission | FamilyEmission]
    quiet: Callable[[str], Emission | None] = lambda _: None

    def each(self) -> Iterator[Emission]:
        """Query by query, those that have rows."""
        return one_by_one(self.emissions)


def one_by_one(emissions: Iterable[Emission | FamilyEmission]) -> Iterator[Emission]:
    for emission in emissions:
        if isinstance(emission, FamilyEmission):
            yield from emission.each()
        else:
            yield emission


def ordinals(instants: np.ndarray) -> np.ndarray:
    """Of sorted instants: how many equal ones stand before each."""
    if not len(instants):
        return np.empty(0, np.int64)
    places = np.arange(len(instants))
    first = np.concatenate([[True], instants[1:] != instants[:-1]])
    return places - np.maximum.accumulate(np.where(first, places, 0))


class Outlet(Protocol):
    """Takes what ticks say; of a group's members only those that it wants are made.

    `write_progress` is part of the tick's commit, so that after a crash the outlet can drop what it
    has already taken: a tick that is repeated repeats its output.
    """

    def wants(self, query: str) -> bool: ...

    def deliver(self, output: TickOutput) -> None: ...

    def write_progress(self, store: Store) -> None: ...


class NoOutlet:
    """For engines whose results are only read back."""

    def wants(self, query: str) -> bool:
        return False

    def deliver(self, output: TickOutput) -> None:
        pass

    def write_progress(self, store: Store) -> None:
        pass
