"""Aggregates without GROUP BY: once there is a row, there is one for good.

Such a row comes with the first tuple and stays when all tuples have gone (COUNT says 0). So what a
query says does not follow from its windows alone, and a query that moves must not forget that it
has emitted a row: its new run may begin after that. Markers say who has.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable

import polars as pl

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.compile.encoding import operator_id
from thalweg.engine.shared.compile.planning import Run
from thalweg.engine.shared.frames import W, name
from thalweg.engine.shared.groups.regroup_actions import RegroupActions
from thalweg.engine.shared.groups.running_group import RunningGroup
from thalweg.engine.shared.state.hashing import with_hash
from thalweg.engine.shared.state.names import EMITTED, Table, state_table
from thalweg.engine.shared.state.segments import BundleWriter, SegmentReader
from thalweg.plan.windows import BEGINNING, FOREVER
from thalweg.sharing.core import Grouped, Step, WithoutRepeats

MEMBER = name(0)  # in what is run for many: whose row it is


def can_copy_markers(above: tuple[Step, ...]) -> bool:
    """Whether nothing that has state of its own stands on a row that lasts."""
    lasting = next((i for i, s in enumerate(above) if isinstance(s, Grouped) and not s.keys), None)
    return lasting is None or not any(
        isinstance(s, Grouped | WithoutRepeats) for s in above[lasting + 1 :]
    )


def copy_markers(actions: RegroupActions, members: Iterable[Run], group: RunningGroup) -> None:
    """Mark those in their new group who are marked where they are now."""
    table = _table(group.run)
    if table is None:
        return
    assert group.family is not None
    marked = {m.name for m in members if _has_emitted(actions, m)}
    there = _places(actions, table)
    missing = [i for i, m in enumerate(group.family.members) if m in marked and i not in there]
    if missing:
        rows = pl.DataFrame({MEMBER: missing}, schema={MEMBER: pl.Int64})
        hashed = with_hash(rows, [pl.col(MEMBER)]).with_columns(pl.lit(1, dtype=pl.Int64).alias(W))
        bundle = f"markers-{uuid.uuid4().hex[:8]}.arrow"
        writer = BundleWriter(actions.manifest.folder, bundle)
        writer.add(table, hashed.sort("_h"), BEGINNING, FOREVER)
        actions.manifest.adopt(writer.close())


def _has_emitted(actions: RegroupActions, member: Run) -> bool:
    roster = actions.roster
    name = roster.group_of.get(member.name)
    if name is None:
        table = _table(member)
        return table is not None and bool(actions.manifest.of(table))
    group = roster.groups[name]
    table = _table(group.run)
    assert table is not None
    assert group.family is not None
    return group.family.members.index(member.name) in _places(actions, table)


def _table(run: Run) -> Table | None:
    """Where the kernel of aggregates keeps the markers (`kernels.aggregate`)."""
    lasting = (
        o for o in ph.walk(run.output) if isinstance(o, ph.Aggregate) and (o.lasting or not o.keys)
    )
    found = next(lasting, None)
    return None if found is None else state_table(run.flow, operator_id(found), EMITTED)


def _places(actions: RegroupActions, table: Table) -> set[int]:
    reader, manifest = SegmentReader(), actions.manifest
    frames = (reader.read(manifest.folder, s).frame for s in manifest.of(table))
    return {place for frame in frames for place in frame[MEMBER].to_list()}
