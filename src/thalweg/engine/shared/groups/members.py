"""Members of a group as families: all that is not a constant or a window in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from thalweg.engine.shared.compile.blocks import nameless
from thalweg.engine.shared.compile.planning import Run
from thalweg.engine.shared.frames import dtype, name
from thalweg.engine.shared.groups.families import ENDLESS, Family, Lengths
from thalweg.engine.shared.groups.member_aggregates import paned_window
from thalweg.engine.shared.groups.running_group import core_of, has_ends
from thalweg.plan.expr import TRUE, Col, Expr, remap
from thalweg.plan.windows import BEGINNING
from thalweg.sharing.core import Core, slides_of
from thalweg.sharing.index.constants import Constants, manner_of
from thalweg.sharing.profile import Profile, profile
from thalweg.sharing.representative import Representative


def lengths_of(core: Core) -> Lengths:
    return tuple(ENDLESS if w.length is None else w.length for w in core.windows)


def families_of(rep: Representative, members: Iterable[Run]) -> list[Family]:
    """Members by all that is not a constant or a window."""
    alike: dict[tuple[object, ...], list[tuple[Run, Profile]]] = {}
    for member in members:
        wanted = profile(core_of(member), rep)
        assert member.normal is not None
        key = (
            member.normal.kind,
            wanted.outputs,
            tuple((e, manner_of(r)) for e, r in wanted.ranges),
            tuple((r.template, r.types) for r in wanted.residuals),
        )
        alike.setdefault(key, []).append((member, wanted))
    return [_family(rep, of) for of in alike.values()]


def aggregate_family(rep: Representative, members: list[Run]) -> Family:
    """Members that are alike below an aggregate: one relation from the flow's beginning on."""
    cores = [core_of(m) for m in members]
    wanted = [Profile(c.windows, c.ranges, c.residuals, aggregate_inputs(c)) for c in cores]
    family = _family(rep, list(zip(members, wanted, strict=True)))
    never = np.full(len(members), BEGINNING, dtype=np.int64)
    return replace(family, kind=None, started=never)


def without_ends(family: Family) -> Family:
    """The same where windows stand above: tuples come, and never go."""
    endless = np.full_like(family.lengths, ENDLESS)
    return replace(family, slides=(1,) * len(family.slides), lengths=endless)


def aggregate_inputs(core: Core) -> tuple[Expr, ...]:
    """What operators above a core get of it; COUNT(*) wants no column, but rows need one."""
    return core.outputs or (TRUE,)


def aggregate_key(member: Run) -> tuple[object, ...]:
    """What such members must have in common."""
    assert member.normal is not None
    core = member.normal.core
    return (
        core.signature,
        core.outputs,
        tuple((e, manner_of(r)) for e, r in core.ranges),
        tuple((r.template, r.types) for r in core.residuals),
        member.normal.above,
        member.normal.kind,
        paned_window(core, member.normal.above),  # it stands above: all have the same
    )


def _family(rep: Representative, members: list[tuple[Run, Profile]]) -> Family:
    first, wanted = members[0]
    assert first.normal is not None
    places = {column: i for i, column in enumerate(rep.attributes)}
    width = len(places) + len(rep.streams)
    core_width = rep.to_core().width

    def here(expr: Expr, shift: int = 0) -> Expr:
        return remap(
            expr, lambda c: places[c] if c < core_width else c - core_width + width + shift
        )

    exprs = {e: here(e) for e, _ in wanted.ranges}
    constants = Constants.of(
        [{exprs[e]: r for e, r in p.ranges} for _, p in members],
        {x: dtype(x.type) for x in exprs.values()},
    )
    residuals, columns, shift = [], {}, 0
    for place, residual in enumerate(wanted.residuals):
        residuals.append(here(residual.template, shift))
        for i, type_ in enumerate(residual.types):
            values = [p.residuals[place].constants[i] for _, p in members]
            columns[name(width + shift + i)] = pl.Series(values, dtype=dtype(type_), strict=True)
        shift += len(residual.types)
    shown = tuple(nameless(here(e)) for e in wanted.outputs)
    return Family(
        kind=first.normal.kind,
        outputs=shown,
        members=tuple(m.name for m, _ in members),
        slides=slides_of(rep.windows),
        lengths=np.array([lengths_of(core_of(m)) for m, _ in members], dtype=np.int64).T,
        started=np.array(
            [BEGINNING if m.started is None else m.started for m, _ in members], dtype=np.int64
        ),
        horizons=_horizons(rep, [m for m, _ in members]),
        constants=constants,
        residuals=tuple(residuals),
        parameters=pl.DataFrame(columns),
        unique=_position(rep, places, shown),
    )


def _position(rep: Representative, places: Mapping[int, int], shown: Sequence[Expr]) -> int | None:
    """Which output is the position of a tuple, if rows are tuples of one stream."""
    if len(rep.streams) != 1 or not rep.streams[0].is_placed:
        return None
    place = places.get(len(rep.streams[0].fields) - 1)  # it stands behind the stream's own columns
    found = [i for i, e in enumerate(shown) if isinstance(e, Col) and e.index == place]
    return found[0] if found else None


def _horizons(rep: Representative, members: list[Run]) -> np.ndarray | None:
    if not any(m.horizons for m in members):
        return None
    of = [dict(m.horizons) for m in members]
    rows = [[h.get(s.name, BEGINNING) for h in of] for s in rep.streams]
    return np.array(rows, dtype=np.int64)


def window_classes(members: Iterable[Run]) -> list[Lengths]:
    """The different windows of members for which rows end."""
    return sorted({lengths_of(core_of(m)) for m in members if has_ends(core_of(m))})


def windows_in(family: Family) -> list[Lengths]:
    """The same of a family whose members may live elsewhere yet."""
    found = {tuple(int(n) for n in lengths) for lengths in family.lengths.T}
    return sorted(w for w in found if any(n != ENDLESS for n in w))
