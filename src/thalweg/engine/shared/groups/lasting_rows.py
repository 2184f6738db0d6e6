"""Aggregates without GROUP BY: who has had a row once has one for good.

Such a row comes with the first tuple and stays when all tuples have gone (COUNT says 0). So what a
query says does not follow from its windows alone, and a query that moves must not forget that it
has been born: its new run may begin after that.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import TYPE_CHECKING

import polars as pl

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.compile.planning import Run
from thalweg.engine.shared.frames import W, name
from thalweg.engine.shared.groups.running_group import RunningGroup
from thalweg.engine.shared.state.hashing import with_hash
from thalweg.engine.shared.state.segments import BundleWriter, SegmentReader
from thalweg.engine.shared.tick.task import BEGINNING
from thalweg.plan.windows import FOREVER
from thalweg.sharing.core import Grouped, Step, WithoutRepeats

if TYPE_CHECKING:
    from thalweg.engine.shared.engine import SharedEngine

MEMBER = name(0)  # in what is run for many: whose row it is


def can_copy_markers(above: tuple[Step, ...]) -> bool:
    """Whether nothing that has state of its own stands on a row that lasts."""
    lasting = next((i for i, s in enumerate(above) if isinstance(s, Grouped) and not s.keys), None)
    return lasting is None or not any(
        isinstance(s, Grouped | WithoutRepeats) for s in above[lasting + 1 :]
    )


def carry(engine: SharedEngine, members: Iterable[Run], home: RunningGroup) -> None:
    """Let those be born in their new home who are where they live now."""
    table = _table(home.run)
    if table is None:
        return
    born = {m.name for m in members if _has_emitted(engine, m)}
    there = _places(engine, table)
    missing = [i for i, m in enumerate(home.family.members) if m in born and i not in there]  # type: ignore[union-attr]
    if missing:
        rows = pl.DataFrame({MEMBER: missing}, schema={MEMBER: pl.Int64})
        marked = with_hash(rows, [pl.col(MEMBER)]).with_columns(pl.lit(1, dtype=pl.Int64).alias(W))
        writer = BundleWriter(
            engine.folder / "segments", f"born-{uuid.uuid4().hex[:8]}.arrow", durable=engine.durable
        )
        writer.add(table, marked.sort("_h"), BEGINNING, FOREVER)
        engine.adopt(writer.close())


def _has_emitted(engine: SharedEngine, member: Run) -> bool:
    home = engine.homes.get(member.name)
    if home is None:
        table = _table(member)
        return table is not None and any(s.table == table for s in engine.segments.values())
    generation = engine.generations[home]
    table = _table(generation.run)
    assert table is not None
    assert generation.family is not None
    return generation.family.members.index(member.name) in _places(engine, table)


def _table(run: Run) -> str | None:
    """Where the kernel of aggregates writes down who is born (`kernels.aggregate`)."""
    lasting = (
        o for o in ph.walk(run.output) if isinstance(o, ph.Aggregate) and (o.lasting or not o.keys)
    )
    found = next(lasting, None)
    return None if found is None else f"{run.flow}/{ph.op_id(found)}/born"


def _places(engine: SharedEngine, table: str) -> set[int]:
    reader, folder = SegmentReader(), engine.folder / "segments"
    stored = [s for s in engine.segments.values() if s.table == table]
    return {place for s in stored for place in reader.read(folder, s).frame[MEMBER].to_list()}
