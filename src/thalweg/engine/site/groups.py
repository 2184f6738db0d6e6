"""What a site says about its groups: who is answered together, how, and what that saves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from thalweg.engine.shared.compile.planning import Run
from thalweg.engine.shared.groups.families import Family
from thalweg.engine.shared.groups.members import families_of
from thalweg.engine.shared.groups.running_group import RunningGroup, core_of
from thalweg.engine.site.savings import Cost, Estimate, Measurement, estimate, measure
from thalweg.plan.nodes import Schema
from thalweg.plan.text import expr_text
from thalweg.sharing.estimate import Statistics
from thalweg.sharing.index.constants import Column
from thalweg.sharing.naming import named_columns
from thalweg.sharing.profile import profile
from thalweg.sharing.text import above_text, profile_text, representative_text, sources_text

SHOWN_MEMBERS = 3  # of each family
SHOWN_WINDOWS = 5


@dataclass(frozen=True, slots=True)
class MemberStatus:
    name: str
    profile: str  # what makes its rows of the representative's


@dataclass(frozen=True, slots=True)
class FamilyStatus:
    """Members that differ in constants and windows only."""

    members: int
    looked_up: list[str]  # what the index of their constants is over, and of which kind
    checked: list[str]  # ranges that are checked for what the index has found
    residuals: int  # conditions that are evaluated for what is left then
    first: list[MemberStatus]


@dataclass(frozen=True, slots=True)
class GroupStatus:
    name: str
    members: int  # 0: it is on its way to the present, and then takes others' members
    streams: list[str]
    representative: str
    above: str  # what is computed above the rows of each member; nothing where members are read
    windows: int  # how many different ones the members have
    first_windows: list[str]
    families: list[FamilyStatus]
    cost_s: float  # of the tasks' time since the site started
    measured: Measurement | None
    estimated: Estimate | None


def group_status(
    group: RunningGroup,
    members: Sequence[Run],
    costs: dict[str, Cost],
    statistics: Statistics,
) -> GroupStatus:
    rep = group.representative
    by_name = {m.name: m for m in members}
    family = group.family
    families = families_of(rep, members) if family is None else [family]
    windows = list(dict.fromkeys(core_of(m).windows for m in members))
    spent = costs.get(group.name, Cost())
    return GroupStatus(
        name=group.name,
        members=len(members),
        streams=list(dict.fromkeys(s.name for s in rep.streams)),
        representative=representative_text(rep),
        above=_above(group, members),
        windows=len(windows),
        first_windows=[sources_text(rep.streams, w) for w in windows[:SHOWN_WINDOWS]],
        families=[
            _family_status(f, group, by_name)
            for f in sorted(families, key=lambda f: -len(f.members))
        ],
        cost_s=spent.seconds,
        measured=measure(spent, [costs[m.name] for m in members if m.name in costs], len(members)),
        estimated=estimate(rep.to_core(), [core_of(m) for m in members], statistics),
    )


def _family_status(family: Family, group: RunningGroup, members: dict[str, Run]) -> FamilyStatus:
    rep = group.representative
    columns = group_columns(group)
    standing = [name for name in family.members if name in members]  # others were dropped
    return FamilyStatus(
        members=len(standing),
        looked_up=list(_column_texts(family.constants.looked_up, columns)),
        checked=list(_column_texts(family.constants.checked, columns)),
        residuals=len(family.residuals),
        first=[
            MemberStatus(name, profile_text(profile(core_of(members[name]), rep), rep))
            for name in standing[:SHOWN_MEMBERS]
        ],
    )


def _above(group: RunningGroup, members: Sequence[Run]) -> str:
    if not group.runs_aggregates or not members:
        return ""
    assert members[0].normal is not None
    return above_text(members[0].normal)


def group_columns(group: RunningGroup) -> Schema:
    """The group's columns as people call them: its attributes; stamps are in no condition."""
    rep = group.representative
    named = named_columns(rep.streams)
    return tuple(named[i] for i in rep.attributes)


def _column_texts(columns: Iterable[Column], schema: Schema) -> Iterable[str]:
    for column in columns:
        yield f"{expr_text(column.expr, schema)} ({column.manner.value})"
