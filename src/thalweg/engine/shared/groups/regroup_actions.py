"""What regrouping can do: see how far runs have come, start groups, move members, end groups.

`regrouping` (joins and filters) and `aggregate_grouping` decide who is answered together. They look
at all queries before a tick, and never within one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.compile.columns import needed_columns
from thalweg.engine.shared.compile.planning import Run
from thalweg.engine.shared.groups.cost_model import (
    Observed,
    Part,
    Sharing,
    is_wasteful,
    saving_s,
    statistics_for,
)
from thalweg.engine.shared.groups.families import Family
from thalweg.engine.shared.groups.member_aggregates import member_aggregates, paned_window
from thalweg.engine.shared.groups.records import family_of, group_to_bytes
from thalweg.engine.shared.groups.roster import Roster
from thalweg.engine.shared.groups.running_group import RunningGroup, compile_group, core_of
from thalweg.engine.shared.state.manifest import Manifest
from thalweg.engine.shared.state.names import GROUP
from thalweg.engine.shared.state.segments import SegmentReader
from thalweg.engine.shared.state.store import Store
from thalweg.plan.windows import BEGINNING, UNBOUNDED
from thalweg.sharing.core import Core
from thalweg.sharing.estimate import Statistics
from thalweg.sharing.representative import Representative, representative

SURELY_MANY = 64
MOST_WINDOWS = 64  # different windows in one group: each is looked at in every tick


@dataclass
class Grouping:
    """What is known between ticks about who could be answered together."""

    sharing: Sharing
    observed: Observed = field(default_factory=Observed)
    tried: set[frozenset[str]] = field(default_factory=set)  # merges begun since queries changed
    shrunk: set[str] = field(default_factory=set)  # groups that may have lost members
    pinned: set[str] = field(default_factory=set)  # queries that are to stay alone
    settled: bool = False  # whether there is nothing left to do
    waits_after: tuple[int, int] | None = None  # a tick and a roster that left nothing to do

    def queries_came(self) -> None:
        self.settled = False
        self.tried.clear()

    def member_left(self, group: str) -> None:
        self.settled = False
        self.shrunk.add(group)


class RegroupActions:
    """One round; `settled` says whether a later one could do more, `changed` whether this one has
    done something."""

    def __init__(
        self, store: Store, manifest: Manifest, roster: Roster, grouping: Grouping
    ) -> None:
        self.store, self.manifest, self.roster, self.grouping = store, manifest, roster, grouping
        self.settled, self.changed = True, False
        self.tick = store.tick()[0]
        self._frontiers = store.frontiers()

    def has_run(self, run: Run) -> bool:
        return self.reached(run) > BEGINNING

    def reached(self, run: Run) -> int:
        return self._frontiers.get(run.flow, BEGINNING)

    def pays(self, parts: list[Part]) -> bool:
        """Whether one representative for all costs less than what there is."""
        if self.grouping.sharing is Sharing.WHEREVER_POSSIBLE:
            return True
        if len(parts) > SURELY_MANY:
            return True  # their number alone outweighs what a wider range may cost
        return saving_s(parts, self.grouping.observed, self._statistics(parts[0].core)) > 0

    def is_too_loose(self, group: RunningGroup, members: list[Run]) -> bool:
        """Whether half of what is computed, or more, is for members that have gone."""
        grouping, name = self.grouping, group.name
        if name not in grouping.shrunk or frozenset(m.name for m in members) in grouping.tried:
            return False
        if group.family is not None and 2 * len(members) <= len(group.family.members):
            return True
        wide = group.representative.to_core()
        tight = tighter([core_of(m) for m in members], wide)
        if tight is not None:
            if grouping.sharing is Sharing.WHEREVER_POSSIBLE:
                return True
            if name not in grouping.observed.seconds:
                self.settled = False  # a tick will tell
                return False
            part, statistics = Part(wide, name), self._statistics(wide)
            if is_wasteful(part, tight.to_core(), grouping.observed, statistics):
                return True
        grouping.shrunk.remove(name)
        return False

    def _statistics(self, core: Core) -> Statistics:
        return statistics_for(
            core, self.grouping.observed, self.manifest, SegmentReader(), self.manifest.folder
        )

    def end(self, group: RunningGroup) -> None:
        self.changed = True
        self.store.runs.end_group(group.name, self.tick)
        self.roster.end(group.name)

    def start(
        self, members: list[Run], beside: Run | None, *, runs_aggregates: bool = False
    ) -> RunningGroup:
        """A new group, which begins beside a query that is new, or from the SteMs' contents."""
        cores = [core_of(m) for m in members]
        rep = representative(cores)
        if beside is not None:
            epoch, started, horizons = beside.epoch, beside.started, beside.horizons
        else:
            epoch, started = self.tick + 1, None
            horizons = tuple(self.complete(members).items())
        name = f"{GROUP}{self.store.next_number('groups')}"
        if runs_aggregates:
            family = family_of(rep, members)
            made: ph.Ending = _aggregates(name, rep, members, family)
        else:
            family, made = None, compile_group(rep, cores)
        run = Run(name, (), members[0].streams, epoch, started, horizons, made=made)
        group = RunningGroup(rep, run, family)
        self.changed = True
        self.store.runs.begin_group(name, group_to_bytes(group, members))
        self.roster.begin(group)
        return group

    def complete(self, members: list[Run]) -> dict[str, int]:
        """From where the SteMs are complete in all that these need together."""
        cores = [core_of(m) for m in members]
        needed = needed_columns([compile_group(representative(cores), cores)])
        inputs = self.store.inputs
        found = ((s, inputs.complete_from(s, of)) for s, of in sorted(needed.items()))
        return {s: h for s, h in found if h > BEGINNING}

    def move(self, members: Iterable[Run], group: RunningGroup) -> None:
        moved = list(members)
        if not moved:
            return
        self.changed = True
        self.store.runs.join((m.name, self.tick + 1, group.name) for m in moved)
        self.roster.move(moved, group.name)


def tighter(cores: Sequence[Core], wide: Core) -> Representative | None:
    """The representative of the cores, unless it is as loose as a given one."""
    found, done = representative(cores[:1]), 1
    while not found.covers(wide):
        if done == len(cores):
            return found
        # Where it is as loose, a few mostly show it: those that are as loose themselves.
        found = reduce(Representative.merged, cores[done : 2 * done], found)
        done = min(2 * done, len(cores))
    return None


def _aggregates(name: str, rep: Representative, members: list[Run], family: Family) -> ph.Output:
    """The operators that run for all members together."""
    normal = members[0].normal
    assert normal is not None
    paned = paned_window(normal.core, normal.above)
    cores = [core_of(m) for m in members]
    if paned is not None:
        rep = replace(rep, windows=(UNBOUNDED,))
        cores = [replace(c, windows=(UNBOUNDED,)) for c in cores]
    group = compile_group(rep, cores)
    return member_aggregates(group, name, family.outputs, normal.above, normal.kind, paned)
