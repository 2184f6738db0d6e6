"""What would be lost with a definition: state that only it has, tuples that are stored."""

from __future__ import annotations

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
        return _of_query(site, definition.name)
    if isinstance(definition, StreamDef):
        tables = sizes(site.engine.manifest)
        found = (s for table, s in tables.items() if stem_stream(table) == definition.name)
        return sum(found, Size())
    return Size()


def _of_query(site: Site, name: str) -> Size:
    """What its operators keep, but for those that others use too. A member's group stays."""
    plan = site.engine.plan
    for flow in plan.flows:
        used = {run: {plan.name_of(o) for o in walk(output)} for run, output in flow.outputs}
        if name in used:
            others = {op for run, ops in used.items() if run != name for op in ops}
            mine = {(flow.name, op) for op in used[name] - others}
            tables = sizes(site.engine.manifest)
            return sum((s for table, s in tables.items() if state_owner(table) in mine), Size())
    return Size()
