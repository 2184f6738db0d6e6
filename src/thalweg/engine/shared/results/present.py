"""What a query's result holds at an instant that is final."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from thalweg.engine.shared.compile.planning import Run, make_plan
from thalweg.engine.shared.frames import OP, POS, TS, W, data_schema, names, net
from thalweg.engine.shared.kernels.output import output
from thalweg.engine.shared.kernels.registry import KERNELS
from thalweg.engine.shared.state.names import stem_stream
from thalweg.engine.shared.state.segments import BundleWriter, Section
from thalweg.engine.shared.tick.cut import Cut
from thalweg.engine.shared.tick.spec import tick_spec
from thalweg.engine.shared.tick.task import Task
from thalweg.plan.catalog import QueryDef
from thalweg.plan.nodes import Node, base_streams
from thalweg.plan.windows import BEGINNING, FOREVER

if TYPE_CHECKING:
    from thalweg.engine.shared.engine import SharedEngine

NAME = "group/now"  # no query has such a name


class NotKept(LookupError):
    """A content that can't be told any more, and why."""


def content(engine: SharedEngine, query: QueryDef, at: int | None = None) -> pl.DataFrame:
    """The rows of a relation, `c…`, at an instant that is final for it; the last one if none is
    given. While no tick runs."""
    run = engine.roster.queries[query.name]
    final = frontier_of(engine, query.name)
    columns = names(len(run.columns))
    schema = data_schema(tuple(f.type for f in query.plan.schema))
    nothing = pl.DataFrame(schema={**schema, W: pl.Int64})
    if at is None:
        at = final - 1
    assert at < final, f"{query.name} is not final at {at}"
    if _takes_over_at(engine, query.name) == at + 1:
        held = [nothing, *engine.contents.base(query.name)]
        return _rows(net(pl.concat([p.select(*columns, W) for p in held]), columns))
    if engine.archive.complete_from(query.name) > BEGINNING and not run.keeps_content:
        if at < final - 1:
            raise NotKept(f"what {query.name} held at {at} is no longer kept")
        return evaluate(engine, query.plan, at, dict(run.horizons))
    parts = [nothing]
    lineage = engine.store.versions.lineage(query.name)
    if engine.archive.complete_from(query.name) > BEGINNING:
        parts += _folded(engine, run, at)
    elif lineage is not None:
        parts += engine.contents.base(query.name)
    base = 0 if lineage is None else lineage.base
    for page in engine.archive.pages(query.name, ticks=(base, FOREVER)):
        rows = page.rows.filter(pl.col(TS) <= at)
        parts.append(rows.select(*columns, pl.col(OP).cast(pl.Int64).alias(W)))
    return _rows(net(pl.concat([p.select(*columns, W) for p in parts]), columns))


def _folded(engine: SharedEngine, run: Run, at: int) -> list[pl.DataFrame]:
    """What the query said in ticks that are gone."""
    if at < engine.archive.complete_from(run.name) - 1:
        raise NotKept(f"what {run.name} held at {at} is no longer kept")
    if run.epoch <= int(engine.store.note("contents") or 0):
        raise NotKept(
            f"the first results of {run.name} were dropped by a version that kept no content: "
            "drop the query and create it again"
        )
    return engine.contents.base(run.name)


def frontier_of(engine: SharedEngine, query: str) -> int:
    """All instants before it are final for the query."""
    run = engine.roster.run_of(query)
    reached = None if run is None else engine.store.frontier(run.flow)
    if reached is None and (retired := engine.frozen.retired_at(query)) is not None:
        return retired
    if reached is None:
        since = _takes_over_at(engine, query)
        return BEGINNING if since is None else since
    return reached


def _takes_over_at(engine: SharedEngine, query: str) -> int | None:
    """From when on a version speaks that has not spoken yet: until then its result is what the one
    before it held. None if there is no such version, or its columns are others."""
    versions = engine.store.versions
    lineage = versions.lineage(query)
    if lineage is None or not lineage.pending or versions.ended(query)[-1].closes:
        return None
    return lineage.since


def evaluate(
    engine: SharedEngine,
    plan: Node,
    at: int,
    horizons: Mapping[str, int],
    contents: Mapping[str, pl.DataFrame] | None = None,
) -> pl.DataFrame:
    """The rows of a plan at a final instant, from what SteMs hold: what a query that is submitted
    then would begin with. `contents` are relations of their own, with the rows that they have then.

    The engine's own kernels compute it; nothing is written. Whoever asks sees to it that SteMs hold
    what the plan's windows ask for.
    """
    streams = {s.name: s for s in base_streams(plan)}
    pairs = tuple(sorted((s, h) for s, h in horizons.items() if h > BEGINNING))
    run = Run(NAME, (), tuple(sorted(streams)), -1, at, pairs, plan=plan)
    made = make_plan([run], streams, engine.store.inputs.stems())
    (flow,) = made.flows
    cut = Cut(0, [], [], {flow.name: (BEGINNING, at + 1)}, [NAME], {}, 1)
    spec = tick_spec(
        engine.store,
        cut,
        made,
        plan_file="",
        segments=[s for s in engine.manifest if stem_stream(s.table) in streams],
        started={NAME: at},
        groups={},
        shares=(),
        held={},
    )
    task = _Looking(spec, made, KERNELS, 0, 0)
    for name, rows in (contents or {}).items():
        task.give(name, rows, at)
    ((_, op),) = flow.outputs
    rows = output(task, flow, NAME, op)  # type: ignore[arg-type]
    return rows.drop(TS, OP)


class _Looking(Task):
    """A task that leaves nothing behind."""

    def __init__(self, *of: Any) -> None:
        super().__init__(*of)
        self.writer = self.results = self.pushed = _Nowhere(self.spec.files, "")

    def give(self, relation: str, rows: pl.DataFrame, at: int) -> None:
        """Let a relation have these rows."""
        stamped = rows.with_columns(
            pl.lit(at, dtype=pl.Int64).alias(TS),
            pl.int_range(rows.height, dtype=pl.Int64).alias(POS),
            pl.lit(1, dtype=pl.Int64).alias(W),
        )
        self.once(("landed", relation), lambda: stamped)


class _Nowhere(BundleWriter):
    """Writes nothing."""

    def write(self, frame: pl.DataFrame) -> Section:
        return Section("", 0, 0)


def _rows(summed: pl.DataFrame) -> pl.DataFrame:
    """Each row as often as it is there, in canonical order."""
    assert not (summed[W] < 0).any(), "a relation holds no row less than never"
    times = np.repeat(np.arange(summed.height), summed[W].to_numpy())
    columns = [c for c in summed.columns if c != W]
    return summed[times].drop(W).sort(columns, nulls_last=False)
