"""What queries' results hold, beyond the ticks that are retained.

A relation's content is what all its changes add up to. When old ticks go, their changes become the
rows that they add up to: a table of content for each query, to which the retained changes are added
when somebody reads. Queries whose content follows from what SteMs hold (`is_in_stems`) need none.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping

import polars as pl

from thalweg.engine.shared.compile.planning import Run
from thalweg.engine.shared.frames import MEMBER, W, net
from thalweg.engine.shared.groups.families import by_member, changes
from thalweg.engine.shared.groups.members import families_of
from thalweg.engine.shared.groups.running_group import RunningGroup
from thalweg.engine.shared.results.content import weighed
from thalweg.engine.shared.results.results import Results
from thalweg.engine.shared.state.folder import Folder
from thalweg.engine.shared.state.names import ENDED, GROUP, STARTED, content_table, result_run
from thalweg.engine.shared.state.segments import BundleWriter, Segment, SegmentReader
from thalweg.engine.shared.state.store import Store

FOLDER = "contents"
FAN_IN = 8  # so many segments of one query's content are merged into one


class Contents:
    """`registered` gives a standing query, `group_of` a group by its name, running or not."""

    def __init__(
        self,
        store: Store,
        files: Folder,
        registered: Callable[[str], Run | None],
        group: Callable[[str], RunningGroup | None],
    ) -> None:
        self._store, self._registered, self._group = store, registered, group
        self._files, self.folder = files, files / FOLDER

    def base(self, query: str) -> list[pl.DataFrame]:
        """`c…`, `_w`: what a query had said in the ticks that are gone."""
        reader = SegmentReader()
        listed = self._store.outputs.contents(content_table(query))
        return [reader.read(self.folder, s).frame for s in listed]

    def fold(self, upto: int) -> tuple[list[Segment], list[Segment]]:
        """The content of ticks up to this one, which are about to go: segments that come, and that
        these replace. They count when the book lists them."""
        parts: dict[str, list[pl.DataFrame]] = {}
        for query, rows in self._said(upto):
            parts.setdefault(query, []).append(rows)
        bundle = f"{upto:010d}-{uuid.uuid4().hex[:8]}.arrow"
        writer = BundleWriter(self.folder, bundle)
        reader = SegmentReader()
        replaced: list[Segment] = []
        for query, frames in sorted(parts.items()):
            table = content_table(query)
            before = self._store.outputs.contents(table)
            if len(before) >= FAN_IN:
                frames += [reader.read(self.folder, s).frame for s in before]
                replaced += before
            columns = [c for c in frames[0].columns if c != W]
            summed = net(pl.concat([f.select(*columns, W) for f in frames]), columns)
            if summed.height:
                writer.add(table, summed.sort(columns, nulls_last=False), upto, upto)
        return writer.close(), replaced

    def begin_with(self, query: str, held: pl.DataFrame | None, tick: int) -> None:
        """Another version of a query stands from here on, with what it has taken over. The caller
        holds a transaction."""
        table = content_table(query)
        added: list[Segment] = []
        if held is not None and held.height:
            bundle = f"{tick:010d}-{uuid.uuid4().hex[:8]}.arrow"
            writer = BundleWriter(self.folder, bundle)
            columns = [c for c in held.columns if c != W]
            writer.add(table, held.sort(columns, nulls_last=False), tick, tick)
            added = writer.close()
        self._store.outputs.change_contents(added, self._store.outputs.contents(table))

    def sweep(self) -> None:
        """Remove files that the book does not list."""
        self.folder.sweep(self._store.outputs.content_bundles())

    def _said(self, upto: int) -> Iterator[tuple[str, pl.DataFrame]]:
        """(query, `c…` and `_w`): what those that need a table of content said, tick by tick."""
        members = _Members(self._store)
        results = Results(self._files)
        base = {q: lineage.base for q, lineage in self._store.versions.all().items()}
        for tick, segments in self._store.outputs.by_tick(upto):
            of_groups: dict[str, dict[str, list[Segment]]] = {}
            own: dict[str, list[Segment]] = {}
            for segment in segments:
                said_by = result_run(segment.table)
                if said_by is None:
                    continue
                run, part = said_by
                if run.startswith(GROUP):
                    of_groups.setdefault(run, {}).setdefault(part, []).append(segment)
                else:
                    own.setdefault(run, []).append(segment)
            for query, listed in own.items():
                if self._is_kept(query) and tick >= base.get(query, 0):
                    yield query, weighed(results.rows(listed))
            for name, by_part in of_groups.items():
                group = self._group(name)
                wanted = [
                    q for q in members.of(name, tick) if self._is_kept(q) and tick >= base.get(q, 0)
                ]
                if group is not None and wanted:
                    yield from self._of_group(results, group, by_part, wanted)

    def _of_group(
        self,
        results: Results,
        group: RunningGroup,
        by_part: Mapping[str, list[Segment]],
        wanted: list[str],
    ) -> Iterator[tuple[str, pl.DataFrame]]:
        if group.family is not None:
            rows = by_member(results.rows(by_part.get("", [])))
            yield from _each(rows, group.family.members, set(wanted))
            return
        runs = [run for q in wanted if (run := self._registered(q)) is not None]
        any_segment = next(s for of in by_part.values() for s in of)
        started, ended = (
            results.group_rows(by_part.get(part, []), group.operator) for part in (STARTED, ENDED)
        )
        for family in families_of(group.representative, runs):
            rows = changes(family, started, ended, any_segment.low, any_segment.high)
            yield from _each(rows, family.members, set(wanted))

    def _is_kept(self, query: str) -> bool:
        run = self._registered(query)
        return run is None or run.keeps_content


def _each(
    rows: pl.DataFrame, members: Iterable[str], wanted: set[str]
) -> Iterator[tuple[str, pl.DataFrame]]:
    names = list(members)
    for (place,), part in rows.partition_by(MEMBER, as_dict=True).items():
        if names[int(place)] in wanted:
            yield names[int(place)], weighed(part.drop(MEMBER))


class _Members:
    """Who was a member of which group in which tick."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._spans: dict[str, list[tuple[str, int, int | None]]] | None = None

    def of(self, group: str, tick: int) -> list[str]:
        if self._spans is None:
            self._spans = {}
            for query, since, until, name in self._store.runs.all_memberships():
                self._spans.setdefault(name, []).append((query, since, until))
        spans = self._spans.get(group, [])
        return [q for q, since, until in spans if since <= tick and (until is None or tick < until)]
