"""Running groups as bytes: what the book keeps of them.

Kept are the representative, the operators (whose identities name the group's state) and, where
members' aggregates are run, of each member what differs. All else follows from these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from thalweg.engine.shared.compile.encoding import CODEC
from thalweg.engine.shared.compile.planning import Run
from thalweg.engine.shared.groups.families import Family
from thalweg.engine.shared.groups.member_aggregates import paned_window
from thalweg.engine.shared.groups.members import aggregate_family, without_ends
from thalweg.engine.shared.groups.running_group import RunningGroup, core_of
from thalweg.sharing.core import NormalQuery
from thalweg.sharing.representative import Representative

_VERSION = 1


def group_to_bytes(group: RunningGroup, members: Sequence[Run]) -> bytes:
    run = group.run
    own = (run.name, run.streams, run.epoch, run.started, run.horizons, run.output)
    together = None
    if group.runs_aggregates:
        together = (members[0].normal, tuple(_difference(m) for m in members))
    return CODEC.encode((_VERSION, group.representative, own, together))


def group_from_bytes(data: bytes) -> RunningGroup:
    _, representative, own, together = CODEC.decode(data)
    name, streams, epoch, started, horizons, output = own
    run = Run(name, (), streams, epoch, started, horizons, made=output)
    if together is None:
        return RunningGroup(representative, run)
    normal, differences = together
    members = [_member(normal, streams, d) for d in differences]
    return RunningGroup(representative, run, family_of(representative, members))


def family_of(representative: Representative, members: Sequence[Run]) -> Family:
    """The family of members whose aggregates are run together."""
    family = aggregate_family(representative, list(members))
    normal = members[0].normal
    assert normal is not None
    is_paned = paned_window(normal.core, normal.above) is not None
    return without_ends(family) if is_paned else family


def _difference(member: Run) -> tuple[Any, ...]:
    core = core_of(member)
    constants = tuple(r.constants for r in core.residuals)
    ranges = tuple(values for _, values in core.ranges)
    return member.name, core.windows, ranges, constants, member.started, member.horizons


def _member(normal: NormalQuery, streams: tuple[str, ...], difference: tuple[Any, ...]) -> Run:
    name, windows, ranges, constants, started, horizons = difference
    core = normal.core
    own = replace(
        core,
        windows=windows,
        ranges=tuple((e, r) for (e, _), r in zip(core.ranges, ranges, strict=True)),
        residuals=tuple(
            replace(r, constants=c) for r, c in zip(core.residuals, constants, strict=True)
        ),
    )
    return Run(name, (), streams, 0, started, horizons, replace(normal, core=own))
