"""What a tick says, brought to the outlet: queries' own rows, and members' rows by families."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from operator import itemgetter

import polars as pl

from thalweg.engine.shared.compile.planning import Run
from thalweg.engine.shared.frames import MEMBER, names
from thalweg.engine.shared.groups.families import Family, by_member, changes, is_colocated
from thalweg.engine.shared.groups.members import families_of
from thalweg.engine.shared.groups.roster import Roster
from thalweg.engine.shared.groups.running_group import RunningGroup
from thalweg.engine.shared.results.content import closing
from thalweg.engine.shared.results.emission import (
    NO_ROWS,
    Emission,
    FamilyEmission,
    NoOutlet,
    Outlet,
    TickOutput,
)
from thalweg.engine.shared.results.large import LARGE, Each, LargeEmission, Part
from thalweg.engine.shared.results.large_members import large_members, without
from thalweg.engine.shared.results.results import Results, in_member_order, in_order
from thalweg.engine.shared.state.names import (
    ENDED,
    STARTED,
    Table,
    family_table,
    result_run,
    result_table,
)
from thalweg.engine.shared.state.segments import Segment
from thalweg.engine.shared.tick.cut import Cut, begins
from thalweg.engine.shared.tick.messages import GroupSpec, TaskReport
from thalweg.engine.shared.tick.plan_files import PlanFiles
from thalweg.plan.windows import BEGINNING


@dataclass(frozen=True)
class Pushed:
    """Families of a group's members whose rows go out, and the file in which tasks find them."""

    families: list[Family]
    # Of each family's members, made once: a tick must not cost as much as there are queries. One
    # that has left the group says nothing.
    runs: list[tuple[int, ...]]
    columns: list[tuple[tuple[str, ...], ...]]
    file: str


class Delivery:
    """`outlet` gets what ticks say; `each` runs tasks that encode what is much."""

    def __init__(
        self, roster: Roster, results: Results, plan_files: PlanFiles, each: Each | None = None
    ) -> None:
        self.outlet: Outlet = NoOutlet()
        self.each = each
        self._roster, self._results, self._plan_files = roster, results, plan_files
        self._pushed: dict[str, Pushed] = {}
        self._made_for: int | None = None  # the roster's version

    def resubscribe(self) -> None:
        """The outlet wants other queries' rows than before."""
        self._made_for = None

    def group_specs(self) -> dict[str, GroupSpec]:
        """What tasks have to know of groups' members."""
        pushed = self._wanted()
        return {
            name: GroupSpec(
                self._roster.windows_of(name), pushed[name].file if name in pushed else None
            )
            for name in self._roster.groups
        }

    def _wanted(self) -> dict[str, Pushed]:
        """What the outlet wants of groups' members, by group."""
        if self._made_for != self._roster.version:
            found = {name: self._pushed_of(g) for name, g in self._roster.groups.items()}
            self._pushed = {name: pushed for name, pushed in found.items() if pushed is not None}
            self._made_for = self._roster.version
        return self._pushed

    def _pushed_of(self, group: RunningGroup) -> Pushed | None:
        members = self._roster.members_of(group.name)
        if group.family is not None:  # run whether anybody listens or not
            families = [group.family]
        else:
            wanted = [m for m in members if self.outlet.wants(m.name)]
            if not wanted:
                return None
            families = families_of(group.representative, wanted)
        runs = {m.name: m.number for m in members}
        columns = {m.name: m.columns for m in members}
        return Pushed(
            families,
            [tuple(runs.get(m, 0) for m in f.members) for f in families],
            [tuple(columns.get(m, ()) for m in f.members) for f in families],
            self._plan_files.write("families", families),
        )

    def __call__(self, cut: Cut, reports: list[TaskReport]) -> int:
        """Hand the tick's rows to the outlet; gives their number."""
        said = _Said(cut, reports)
        emissions: list[Emission | FamilyEmission] = [
            *self._emissions(said),
            *self._family_emissions(said),
        ]
        self.outlet.deliver(TickOutput(cut.number, emissions, lambda q: self._quiet(cut, q)))
        return sum(e.height for e in emissions)

    def _quiet(self, cut: Cut, query: str) -> Emission | None:
        registered, run = self._roster.queries.get(query), self._roster.run_of(query)
        if registered is None or run is None or run.flow not in cut.ranges:
            return None
        low, upto = cut.ranges[run.flow]
        if upto == BEGINNING:
            return None  # it waits for its first instant to become final
        return Emission(query, registered.number, registered.columns, low, upto, NO_ROWS)

    def _emissions(self, said: _Said) -> Iterator[Emission]:
        """Of queries that run alone, in order of name."""
        queries, group_of = self._roster.queries, self._roster.group_of
        for run in self._roster.successors():
            if run.replaces is not None and begins(run.flow, said.cut.ranges):
                yield closing(run.name, run.replaces)
        for name, segments in sorted(said.by_run(), key=itemgetter(0)):
            if name in queries and name not in group_of:
                yield self._emission(queries[name], segments, *said.range_of(queries[name]))

    def _emission(self, run: Run, segments: list[Segment], low: int, upto: int) -> Emission:
        height = sum(s.rows for s in segments)
        if self.each is not None and height >= LARGE:
            files = self._results.files
            whole = Part(run.name, run.number, run.columns, files, tuple(segments), low, upto)
            return LargeEmission(whole, self.each, height)
        rows = self._results.rows(segments)
        return Emission(run.name, run.number, run.columns, low, upto, rows)

    def _family_emissions(self, said: _Said) -> Iterator[Emission | FamilyEmission]:
        for group_name, wanted in self._wanted().items():
            group = self._roster.groups[group_name]
            for place in range(len(wanted.families)):
                yield from self._of_family(said, group, wanted, place)

    def _of_family(
        self, said: _Said, group: RunningGroup, wanted: Pushed, place: int
    ) -> Iterator[Emission | FamilyEmission]:
        family = wanted.families[place]
        runs, columns = wanted.runs[place], wanted.columns[place]
        range_ = said.range_of(group.run)
        if group.runs_aggregates:
            segments, pushed, column = said.of(result_table(group.name)), False, names(1)[0]
        elif said.cut.tasks == 1 or is_colocated(group.operator, family):
            segments, pushed, column = said.pushed_of(family_table(group.name, place)), True, MEMBER
        else:
            rows = self._netted_rows(said, group, family)
            if rows is not None and rows.height:
                yield FamilyEmission(family.members, runs, columns, *range_, rows)
            return
        frames = self._results.frames(segments, pushed=pushed)
        large: dict[int, int] = {}
        if self.each is not None and sum(f.height for f in frames) >= LARGE:
            large = large_members(frames, column, LARGE)
        gone = set(self._gone(group, family)) if group.runs_aggregates else set()
        for member, height in large.items():
            if member not in gone:
                whole = Part(
                    family.members[member],
                    runs[member],
                    columns[member],
                    self._results.files,
                    tuple(segments),
                    *range_,
                    member,
                    pushed,
                )
                assert self.each is not None
                yield LargeEmission(whole, self.each, height)
        left = without(frames, column, {*large, *gone})
        rows = in_member_order(left) if pushed else _by_member(left)
        if rows is not None and rows.height:
            yield FamilyEmission(family.members, runs, columns, *range_, rows)

    def _netted_rows(self, said: _Said, group: RunningGroup, family: Family) -> pl.DataFrame | None:
        """Equal rows may be in different tasks."""
        parts = [said.of(result_table(group.name, part)) for part in (STARTED, ENDED)]
        if not any(parts):
            return None
        started, ended = (self._results.group_rows(of, group.operator) for of in parts)
        return changes(family, started, ended, *said.range_of(group.run))

    def _gone(self, group: RunningGroup, family: Family) -> list[int]:
        """Members whose aggregates run on, though they have left the group."""
        group_of = self._roster.group_of
        return [i for i, m in enumerate(family.members) if group_of.get(m) != group.name]


def _by_member(aggregates: list[pl.DataFrame]) -> pl.DataFrame | None:
    return by_member(in_order(aggregates)) if aggregates else None


class _Said:
    """The segments of a tick, by table."""

    def __init__(self, cut: Cut, reports: list[TaskReport]) -> None:
        self.cut = cut
        self._results = _by_table(s for r in reports for s in r.results)
        self._pushed = _by_table(s for r in reports for s in r.pushed)

    def of(self, table: Table) -> list[Segment]:
        return self._results.get(table, [])

    def by_run(self) -> Iterator[tuple[str, list[Segment]]]:
        """What queries, and groups as a whole, have said."""
        for table, segments in self._results.items():
            of = result_run(table)
            if of is not None and not of[1]:
                yield of[0], segments

    def pushed_of(self, table: Table) -> list[Segment]:
        return self._pushed.get(table, [])

    def range_of(self, run: Run) -> tuple[int, int]:
        return self.cut.ranges[run.flow]


def _by_table(segments: Iterator[Segment]) -> dict[Table, list[Segment]]:
    found: dict[Table, list[Segment]] = {}
    for segment in segments:
        found.setdefault(segment.table, []).append(segment)
    return found
