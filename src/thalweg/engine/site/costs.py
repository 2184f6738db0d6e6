"""What would be lost with a definition: state that only it has, tuples that are stored."""

from __future__ import annotations

from collections.abc import Set
from typing import TYPE_CHECKING

from thalweg.engine.shared.compile.physical import walk
from thalweg.engine.shared.explain.state import Size, sizes
from thalweg.engine.shared.state.names import state_owner, stem_stream
from thalweg.plan.catalog import Definition, QueryDef, StreamDef

if TYPE_CHECKING:
    from thalweg.engine.site.site import Site


def lost_with(site: Site, definition: Definition) -> Size:
    """No tick may run meanwhile."""
    if isinstance(definition, QueryDef):
        return held_by(site, {definition.name})
    if isinstance(definition, StreamDef):
        tables = sizes(site.engine.manifest)
        found = (s for table, s in tables.items() if stem_stream(table) == definition.name)
        return sum(found, Size())
    return Size()


def held_by(site: Site, queries: Set[str]) -> Size:
    """What the operators of queries keep, but for those that others use too. A member's group
    stays."""
    plan = site.engine.plan
    mine: set[tuple[str, str]] = set()
    for flow in plan.flows:
        own: set[str] = set()
        others: set[str] = set()
        for run, output in flow.outputs:
            (own if run in queries else others).update(plan.name_of(o) for o in walk(output))
        mine |= {(flow.name, operator) for operator in own - others}
    if not mine:
        return Size()
    tables = sizes(site.engine.manifest)
    return sum((s for table, s in tables.items() if state_owner(table) in mine), Size())
