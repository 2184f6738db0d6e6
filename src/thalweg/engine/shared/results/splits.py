"""What a group has said in a tick, cut for all its readers at other nodes at once.

A member's rows are made of its group's when somebody reads. One after the other, a thousand readers
would look at all of the group's rows a thousand times; together, they look once, through the index
of their constants. What is cut waits until all have come for their part; of those who do not come,
up to a limit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from thalweg.engine.shared.compile.planning import Run
from thalweg.engine.shared.frames import MEMBER
from thalweg.engine.shared.groups.families import Family, changes
from thalweg.engine.shared.groups.members import families_of
from thalweg.engine.shared.groups.running_group import RunningGroup

MOST_ROWS = 4_000_000  # that wait, of all ticks

Members = Callable[[str, int], list[Run]]  # of a group in a tick, those that are read elsewhere
Parts = Callable[[], tuple[pl.DataFrame, pl.DataFrame]]  # what started, and what ended


@dataclass(frozen=True)
class _Split:
    """Frames with all members' rows, and where in them each member's are."""

    frames: list[pl.DataFrame]
    where: dict[str, tuple[Run, int, int, int]]  # frame, first row, how many
    missing: set[str] = field(default_factory=set)  # who has not come yet

    @property
    def height(self) -> int:
        return sum(f.height for f in self.frames)


class Splits:
    """May be called from any thread; whoever comes first cuts, the others wait for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._splits: dict[tuple[str, int], _Split] = {}
        self._families: dict[str, tuple[list[Run], list[Family]]] = {}

    def rows(
        self,
        member: Run,
        group: RunningGroup,
        tick: tuple[int, int, int],
        members: Members,
        parts: Parts,
    ) -> pl.DataFrame | None:
        """One member's; None if nobody else of its group is read elsewhere. `tick` is its number
        and the instants that it was about."""
        number, low, high = tick
        key = (group.name, number)
        with self._lock:
            split = self._splits.get(key)
            if split is None or not _has(split, member):
                readers = members(*key)
                if len(readers) < 2 or not any(r is member for r in readers):
                    return None
                families = self._families_of(group, readers)
                split = self._splits[key] = _cut(families, readers, *parts(), low, high)
            _, frame, first, count = split.where[member.name]
            split.missing.discard(member.name)
            if not split.missing:
                del self._splits[key]
            self._forget()
        return split.frames[frame].slice(first, count)

    def _families_of(self, group: RunningGroup, members: Sequence[Run]) -> list[Family]:
        known = self._families.get(group.name)
        if known is None or not _same(known[0], members):
            known = list(members), families_of(group.representative, members)
            self._families = {group.name: known}  # of one group; there are seldom more
        return known[1]

    def _forget(self) -> None:
        while len(self._splits) > 1 and sum(s.height for s in self._splits.values()) > MOST_ROWS:
            del self._splits[next(iter(self._splits))]


def _has(split: _Split, member: Run) -> bool:
    found = split.where.get(member.name)
    return found is not None and found[0] is member


def _same(one: Sequence[Run], other: Sequence[Run]) -> bool:
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))


def _cut(
    families: Sequence[Family],
    members: Sequence[Run],
    started: pl.DataFrame,
    ended: pl.DataFrame,
    low: int,
    high: int,
) -> _Split:
    frames: list[pl.DataFrame] = []
    where: dict[str, tuple[Run, int, int, int]] = {}
    runs = {m.name: m for m in members}
    for place, family in enumerate(families):
        found = changes(family, started, ended, low, high)
        bounds = np.searchsorted(found[MEMBER].to_numpy(), np.arange(len(family.members) + 1))
        frames.append(found.drop(MEMBER))
        for name, first, end in zip(family.members, bounds[:-1], bounds[1:], strict=True):
            where[name] = (runs[name], place, int(first), int(end - first))
    return _Split(frames, where, set(runs))
