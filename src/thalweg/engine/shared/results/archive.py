"""What queries have said in the retained ticks.

A query that runs alone has its rows written down. What a group has said is written down once, as
the representative's rows, and a member's rows are made of them when somebody reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from thalweg.engine.shared.compile.planning import Run
from thalweg.engine.shared.frames import MEMBER
from thalweg.engine.shared.groups.families import changes, of_member
from thalweg.engine.shared.groups.members import families_of
from thalweg.engine.shared.groups.records import group_from_bytes
from thalweg.engine.shared.groups.running_group import RunningGroup
from thalweg.engine.shared.results.results import Results
from thalweg.engine.shared.state.names import ENDED, STARTED, result_table
from thalweg.engine.shared.state.segments import Segment
from thalweg.engine.shared.state.store import Store
from thalweg.plan.windows import BEGINNING


@dataclass(frozen=True)
class Said:
    """What a query has said in one tick, about the instants [low, upto)."""

    low: int
    upto: int
    rows: pl.DataFrame


@dataclass(frozen=True)
class _Stored:
    """Where a tick's rows are: the query's own (no group), or its group's."""

    group: str | None
    segments: list[tuple[str, Segment]]  # which part of the group's

    @property
    def low(self) -> int:
        return self.segments[0][1].low

    @property
    def upto(self) -> int:
        return self.segments[0][1].high


class Archive:
    """`run_of` gives a standing query as it was registered; any thread may read."""

    def __init__(self, store: Store, folder: Path, registered: Callable[[str], Run | None]) -> None:
        self._store, self._folder, self._registered = store, folder, registered
        self._groups: dict[str, RunningGroup] = {}

    def pages(self, query: str, since: int = BEGINNING) -> Iterator[Said]:
        """Its rows from an instant on, tick by tick; files that are no longer retained are passed
        over."""
        for said in self._said(query):
            if said.upto <= since:
                continue
            page = self._page(query, said)
            if page is not None:
                yield page

    def newest_first(self, query: str) -> Iterator[Said]:
        for said in reversed(self._said(query)):
            page = self._page(query, said)
            if page is not None:
                yield page

    def complete_from(self, query: str) -> int:
        """The instant from which all that the query has said is retained."""
        oldest = self._store.outputs.oldest()
        if oldest is None:
            return BEGINNING
        tick, ranges = oldest
        before = [group for since, group in self._store.runs.memberships(query) if since <= tick]
        if before:
            group = self.group(before[-1])
            run = None if group is None else group.run
        else:
            run = self._registered(query)
        # A run that was not in that tick is younger: nothing of it is gone.
        return BEGINNING if run is None else ranges.get(run.flow, (BEGINNING, BEGINNING))[0]

    def _said(self, query: str) -> list[_Stored]:
        found: dict[int, _Stored] = {}
        for tick, segment in self._store.outputs.segments(result_table(query)):
            found.setdefault(tick, _Stored(None, [])).segments.append(("", segment))
        memberships = self._store.runs.memberships(query)
        for place, (since, group) in enumerate(memberships):
            until = memberships[place + 1][0] if place + 1 < len(memberships) else None
            for part in ("", STARTED, ENDED):
                table = result_table(group, part)
                for tick, segment in self._store.outputs.segments(table, since - 1):
                    if until is None or tick < until:
                        found.setdefault(tick, _Stored(group, [])).segments.append((part, segment))
        return [said for _, said in sorted(found.items())]

    def _page(self, query: str, said: _Stored) -> Said | None:
        try:
            rows = self._rows(query, said)
        except FileNotFoundError:
            return None
        return Said(said.low, said.upto, rows) if rows.height else None

    def _rows(self, query: str, said: _Stored) -> pl.DataFrame:
        # A reader of its own: the engine's forgets files while others may be reading.
        results = Results(self._folder)
        if said.group is None:
            return results.rows([s for _, s in said.segments])
        member = self._registered(query)
        group = self.group(said.group)
        if member is None or member.normal is None or group is None:
            return pl.DataFrame()
        if group.family is not None:
            rows = results.rows([s for _, s in said.segments])
            return of_member(rows, group.family.members.index(query))
        (family,) = families_of(group.representative, [member])
        started, ended = (
            results.group_rows([s for of, s in said.segments if of == part], group.operator)
            for part in (STARTED, ENDED)
        )
        return changes(family, started, ended, said.low, said.upto).drop(MEMBER)

    def group(self, name: str) -> RunningGroup | None:
        """One that runs, or whose results are retained."""
        if name not in self._groups:
            packed = self._store.runs.group(name)
            if packed is None:
                return None
            self._groups[name] = group_from_bytes(packed)
        return self._groups[name]
