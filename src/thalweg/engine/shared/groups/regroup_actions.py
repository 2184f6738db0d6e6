"""What a round of regrouping works with: how far runs have come, new generations, moves.

A round looks at all queries before a tick, and never within one. `regrouping` and `lifting_rules`
say who should be answered together; here is what they can do about it.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.compile.columns import needed_columns
from thalweg.engine.shared.compile.planning import Run
from thalweg.engine.shared.groups.cost_model import (
    Part,
    Sharing,
    is_wasteful,
    saving_s,
    statistics_for,
)
from thalweg.engine.shared.groups.families import Family
from thalweg.engine.shared.groups.member_aggregates import member_aggregates, paned_window
from thalweg.engine.shared.groups.members import aggregate_family, without_ends
from thalweg.engine.shared.groups.running_group import RunningGroup, compile_group, core_of
from thalweg.engine.shared.state.segments import SegmentReader
from thalweg.engine.shared.tick.task import BEGINNING
from thalweg.plan.windows import UNBOUNDED
from thalweg.sharing.core import Core
from thalweg.sharing.estimate import Statistics
from thalweg.sharing.representative import Representative, representative

if TYPE_CHECKING:
    from thalweg.engine.shared.engine import SharedEngine

SURELY_MANY = 64
MOST_WINDOWS = 64  # different windows in one group: each is looked at in every tick
GROUP = "group/"


class RegroupActions:
    """One round over an engine; `settled` says whether a later round could do more, `changed`
    whether this one has done something."""

    def __init__(self, engine: SharedEngine) -> None:
        self.engine = engine
        self.settled, self.changed = True, False
        self.tick = engine.store.tick()[0]
        self._frontiers = dict(engine.store.all("SELECT flow, frontier FROM frontiers"))

    def has_run(self, run: Run) -> bool:
        return self.reached(run) > BEGINNING

    def reached(self, run: Run) -> int:
        return self._frontiers.get(run.flow, BEGINNING)

    def pays(self, parts: list[Part]) -> bool:
        """Whether one representative for all costs less than what there is."""
        engine = self.engine
        if engine.sharing is Sharing.WHEREVER_POSSIBLE:
            return True
        if len(parts) > SURELY_MANY:
            return True  # their number alone outweighs what a wider range may cost
        return saving_s(parts, engine.observed, self._statistics(parts[0].core)) > 0

    def is_too_loose(self, generation: RunningGroup, members: list[Run]) -> bool:
        """Whether half of what is computed, or more, is for members that have gone."""
        engine, name = self.engine, generation.name
        if name not in engine.shrunk or frozenset(m.name for m in members) in engine.tried:
            return False
        if generation.family is not None and 2 * len(members) <= len(generation.family.members):
            return True
        wide = generation.representative.to_core()
        tight = tighter([core_of(m) for m in members], wide)
        if tight is not None:
            if engine.sharing is Sharing.WHEREVER_POSSIBLE:
                return True
            if name not in engine.observed.seconds:
                self.settled = False  # a tick will tell
                return False
            part, statistics = Part(wide, name), self._statistics(wide)
            if is_wasteful(part, tight.to_core(), engine.observed, statistics):
                return True
        engine.shrunk.remove(name)
        return False

    def _statistics(self, core: Core) -> Statistics:
        engine = self.engine
        return statistics_for(
            core,
            engine.observed,
            engine.segments.values(),
            SegmentReader(),
            engine.folder / "segments",
        )

    def end(self, generation: RunningGroup) -> None:
        self.changed = True
        self.engine.store.end_generation(generation.name, self.tick)
        del self.engine.generations[generation.name]
        self.engine.forget_plan()

    def generation(
        self, members: list[Run], beside: Run | None, *, runs_aggregates: bool = False
    ) -> RunningGroup:
        """A new one, which begins like a query that is new itself, or from what the SteMs hold."""
        engine = self.engine
        cores = [core_of(m) for m in members]
        rep = representative(cores)
        streams = members[0].streams
        if beside is not None:
            epoch, started, horizons = beside.epoch, beside.started, beside.horizons
        else:
            epoch, started = self.tick + 1, None
            horizons = tuple(self.complete(members).items())
        name = f"{GROUP}{engine.store.next_number('generations')}"
        if runs_aggregates:
            made, family = _member_aggregates(name, rep, members)
        else:
            made, family = compile_group(rep, cores), None
        run = Run(name, (), streams, epoch, started, horizons, made=made)
        generation = RunningGroup(rep, run, family)
        self.changed = True
        engine.store.write_generation(generation.name, pickle.dumps(generation))
        engine.generations[generation.name] = generation
        engine.forget_plan()
        return generation

    def complete(self, members: list[Run]) -> dict[str, int]:
        """From where the SteMs are complete in all that these need together."""
        cores = [core_of(m) for m in members]
        needed = needed_columns([compile_group(representative(cores), cores)])
        found = ((s, self.engine.store.complete_from(s, of)) for s, of in sorted(needed.items()))
        return {s: h for s, h in found if h > BEGINNING}

    def move(self, members: Iterable[Run], home: RunningGroup) -> None:
        moved = list(members)
        if not moved:
            return
        self.changed = True
        self.engine.store.write_homes((m.name, self.tick + 1, home.name) for m in moved)
        for member in moved:
            self.engine.homes[member.name] = home.name
            self.engine.queries[member.name] = replace(member, plan=None)
        self.engine.forget_plan()


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


def _member_aggregates(
    name: str, rep: Representative, members: list[Run]
) -> tuple[ph.Ending, Family]:
    """The operators that run for all members together."""
    normal, family = members[0].normal, aggregate_family(rep, members)
    assert normal is not None
    paned = paned_window(normal.core, normal.above)
    cores = [core_of(m) for m in members]
    if paned is not None:
        rep, family = replace(rep, windows=(UNBOUNDED,)), without_ends(family)
        cores = [replace(c, windows=(UNBOUNDED,)) for c in cores]
    group = compile_group(rep, cores)
    return member_aggregates(group, name, family.outputs, normal.above, normal.kind, paned), family
