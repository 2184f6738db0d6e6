"""What queries have said in the retained ticks.

A query that runs alone has its rows written down. What a group has said is written down once, as
the representative's rows, and a member's rows are made of them when somebody reads.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import polars as pl

from thalweg.engine.shared.compile.planning import Run
from thalweg.engine.shared.frames import MEMBER
from thalweg.engine.shared.groups.families import changes, of_member
from thalweg.engine.shared.groups.members import families_of
from thalweg.engine.shared.groups.records import group_from_bytes
from thalweg.engine.shared.groups.running_group import RunningGroup
from thalweg.engine.shared.results.results import Results
from thalweg.engine.shared.results.splits import Splits
from thalweg.engine.shared.state.names import ENDED, PUBLISHED, STARTED, result_table
from thalweg.engine.shared.state.segments import BundleWriter, Segment
from thalweg.engine.shared.state.store import Store
from thalweg.engine.shared.state.versions import Ended
from thalweg.plan.windows import BEGINNING, FOREVER


@dataclass(frozen=True)
class Said:
    """What a query has said in one tick, about the instants [low, upto)."""

    low: int
    upto: int
    rows: pl.DataFrame
    tick: int
    is_own: bool = True  # written down as the query's own rows, not made of a group's


@dataclass(frozen=True)
class _Stored:
    """Where a tick's rows are: the query's own (no group), or its group's."""

    tick: int
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

    def __init__(self, store: Store, registered: Callable[[str], Run | None]) -> None:
        self._store, self._registered = store, registered
        self._groups: dict[str, RunningGroup] = {}
        self._splits = Splits()

    def pages(
        self, query: str, since: int = BEGINNING, ticks: tuple[int, int] = (0, FOREVER)
    ) -> Iterator[Said]:
        """Its rows from an instant on, tick by tick from one tick to another; files that are no
        longer retained are passed over."""
        for said in self._said(query, since):
            if said.upto <= since or not ticks[0] <= said.tick <= ticks[1]:
                continue
            page = self._page(query, said)
            if page is not None:
                yield page

    def newest_first(self, query: str, first_tick: int = 0) -> Iterator[Said]:
        for said in reversed(self._said(query)):
            page = self._page(query, said) if said.tick >= first_tick else None
            if page is not None:
                yield page

    def write_out(self, query: str) -> str | None:
        """Make a query's pages its own, whoever has answered it: it is about to be another one.
        Gives the file in which they are."""
        made = [page for page in self.pages(query) if not page.is_own]
        if not made:
            return None
        name = f"{made[-1].tick:010d}-0-0-{uuid.uuid4().hex[:8]}.arrow"
        writer = BundleWriter(self._store.files / "results", name)
        table = result_table(query)
        for page in made:
            segment = writer.add(table, page.rows, page.low, page.upto)
            self._store.outputs.add_segment(page.tick, segment)
        writer.close()
        return name

    def complete_from(self, query: str) -> int:
        """The instant from which all that the query has said is retained."""
        oldest = self._store.outputs.oldest()
        if oldest is None:
            return BEGINNING
        tick, ranges = oldest
        before = [flow for since, flow in self.flows(query) if since <= tick]
        # A run that was not in that tick is younger: nothing of it is gone.
        return ranges.get(before[-1], (BEGINNING, BEGINNING))[0] if before else BEGINNING

    def complete_before(self, ended: Ended) -> int:
        """The same of a version that has ended."""
        oldest = self._store.outputs.oldest()
        if oldest is None:
            return BEGINNING
        tick, ranges = oldest
        before = [flow for since, flow in ended.flows if since <= tick]
        return ranges.get(before[-1], (BEGINNING, BEGINNING))[0] if before else BEGINNING

    def flows(self, query: str) -> list[tuple[int, str]]:
        """From which tick on, in which flow the query was computed."""
        run = self._registered(query)
        found = [] if run is None else [(run.epoch, run.flow)]
        for since, name in self._store.runs.memberships(query):
            group = self.group(name)
            if group is not None:
                found.append((since, group.run.flow))
        return found

    def _said(self, query: str, since: int = BEGINNING) -> list[_Stored]:
        """By tick, at least those that reach beyond an instant."""
        outputs = self._store.outputs
        found: dict[int, _Stored] = {}
        memberships = self._store.runs.memberships(query)
        if not self._is_always_published(query, memberships):
            for tick, segment in outputs.segments(result_table(query), since=since):
                found.setdefault(tick, _Stored(tick, None, [])).segments.append(("", segment))
        for place, (first, group) in enumerate(memberships):
            until = memberships[place + 1][0] if place + 1 < len(memberships) else None
            for part in ("", STARTED, ENDED):
                table = result_table(group, part)
                for tick, segment in outputs.segments(table, first - 1, since):
                    if until is None or tick < until:
                        stored = found.setdefault(tick, _Stored(tick, group, []))
                        stored.segments.append((part, segment))
        return [said for _, said in sorted(found.items())]

    def _page(self, query: str, said: _Stored) -> Said | None:
        try:
            rows = self._rows(query, said)
        except FileNotFoundError:
            return None
        if not rows.height:
            return None
        return Said(said.low, said.upto, rows, said.tick, said.group is None)

    def _rows(self, query: str, said: _Stored) -> pl.DataFrame:
        if said.group is None:
            return self._results().rows([s for _, s in said.segments])
        group = self.group(said.group)
        if group is None:
            return pl.DataFrame()
        if group.family is not None:
            rows = self._results().rows([s for _, s in said.segments])
            return of_member(rows, group.family.members.index(query))
        member = self._registered(query)
        if member is None or member.normal is None:
            return pl.DataFrame()

        def parts() -> tuple[pl.DataFrame, pl.DataFrame]:
            results = self._results()
            started, ended = (
                results.group_rows([s for of, s in said.segments if of == part], group.operator)
                for part in (STARTED, ENDED)
            )
            return started, ended

        if query.startswith(PUBLISHED):
            tick = said.tick, said.low, said.upto
            cut = self._splits.rows(member, group, tick, self._published, parts)
            if cut is not None:
                return cut
        (family,) = families_of(group.representative, [member])
        return changes(family, *parts(), said.low, said.upto).drop(MEMBER)

    def _is_always_published(self, query: str, memberships: list[tuple[int, str]]) -> bool:
        """Whether others read it and it is a member from its first tick on: then nothing is its
        own, since what others read is never replaced."""
        run = self._registered(query) if query.startswith(PUBLISHED) else None
        return run is not None and bool(memberships) and memberships[0][0] <= run.epoch

    def _results(self) -> Results:
        """With a reader of its own: the engine's forgets files while others may be reading."""
        return Results(self._store.files)

    def _published(self, group: str, tick: int) -> list[Run]:
        """Members of a group that are read at other nodes."""
        names = self._store.runs.published_members(group, tick)
        runs = (self._registered(name) for name in names)
        return [run for run in runs if run is not None and run.normal is not None]

    def group(self, name: str) -> RunningGroup | None:
        """One that runs, or whose results are retained."""
        if name not in self._groups:
            packed = self._store.runs.group(name)
            if packed is None:
                return None
            self._groups[name] = group_from_bytes(packed)
        return self._groups[name]
