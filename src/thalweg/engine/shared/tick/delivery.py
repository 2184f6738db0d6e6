"""What a tick says, brought to the outlet: queries' own rows, and members' rows by families."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from thalweg.engine.shared.groups.families import (
    MEMBER,
    Family,
    by_member,
    changes,
    is_colocated,
)
from thalweg.engine.shared.groups.members import families_of
from thalweg.engine.shared.groups.running_group import RunningGroup
from thalweg.engine.shared.results.results import Emission, FamilyEmission
from thalweg.engine.shared.state.segments import Segment
from thalweg.engine.shared.tick.cut import Cut
from thalweg.engine.shared.tick.runner import ENDED, STARTED
from thalweg.engine.shared.tick.task import TaskReport

if TYPE_CHECKING:
    from thalweg.engine.shared.engine import SharedEngine


@dataclass(frozen=True)
class Pushed:
    """Families of a group's members whose rows go out, and the file in which tasks find them."""

    families: list[Family]
    columns: list[tuple[tuple[str, ...], ...]]
    file: str


def pushed_of(engine: SharedEngine, generation: RunningGroup) -> Pushed | None:
    """What the outlet wants of a group's members."""
    members = engine.members_of(generation.name)
    if generation.family is not None:  # run whether anybody listens or not
        columns = {m.name: m.columns for m in members}
        families = [generation.family]
        shown = [tuple(columns.get(m, ()) for m in generation.family.members)]
    else:
        wanted = [m for m in members if engine.outlet.wants(m.name)]
        if not wanted:
            return None
        families = families_of(generation.representative, wanted)
        shown = [tuple(engine.queries[m].columns for m in f.members) for f in families]
    return Pushed(families, shown, engine.plan_files.write("families", families))


def deliver(engine: SharedEngine, cut: Cut, reports: list[TaskReport]) -> int:
    """Hand the tick's rows to the outlet; gives their number."""
    segments = [s for r in reports for s in r.results]
    columns = {name: q.columns for name, q in engine.runs.items() if name in engine.queries}
    emissions: list[Emission | FamilyEmission] = [
        *engine.results.emissions(cut.number, segments, columns),
        *_family_emissions(engine, cut, segments, [s for r in reports for s in r.pushed]),
    ]
    engine.outlet.deliver(emissions)
    return sum(e.rows.height for e in emissions)


def _family_emissions(
    engine: SharedEngine, cut: Cut, results: list[Segment], pushed: list[Segment]
) -> Iterator[FamilyEmission]:
    for name, wanted in engine.pushed.items():
        generation = engine.generations[name]
        if generation.runs_aggregates:
            yield from _aggregate_emissions(engine, cut, generation, wanted, results)
            continue
        for place, family in enumerate(wanted.families):
            if cut.tasks == 1 or is_colocated(generation.operator, family):
                parts = [s for s in pushed if s.table == f"{name}/{place}"]
                rows = engine.results.pushed_rows(parts)
            else:
                rows = _family_rows(engine, generation, family, results)
            if rows is not None and rows.height:
                yield FamilyEmission(cut.number, family.members, wanted.columns[place], rows)


def _aggregate_emissions(
    engine: SharedEngine, cut: Cut, generation: RunningGroup, pushed: Pushed, results: list[Segment]
) -> Iterator[FamilyEmission]:
    said = [s for s in results if s.table == generation.name]
    if not said:
        return
    rows = by_member(engine.results.rows(said))
    members = pushed.families[0].members
    gone = [i for i, m in enumerate(members) if engine.homes.get(m) != generation.name]
    if gone:
        rows = rows.filter(~pl.col(MEMBER).is_in(pl.Series(gone, dtype=pl.UInt32).implode()))
    if rows.height:
        yield FamilyEmission(cut.number, members, pushed.columns[0], rows)


def _family_rows(
    engine: SharedEngine, generation: RunningGroup, family: Family, results: list[Segment]
) -> pl.DataFrame | None:
    """For a family whose equal rows may be in different tasks."""
    op, name = generation.operator, generation.name
    found = {part: [s for s in results if s.table == name + part] for part in (STARTED, ENDED)}
    said = [*found[STARTED], *found[ENDED]]
    if not said:
        return None
    started, ended = (engine.results.group_rows(found[p], op) for p in (STARTED, ENDED))
    return changes(family, started, ended, said[0].low, said[0].high)
