"""A tick's specification: all that its tasks need to know, gathered from the engine."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.compile.planning import Stems, floor_of
from thalweg.engine.shared.kernels.join.probing import probing_order
from thalweg.engine.shared.state.store import Store
from thalweg.engine.shared.tick import commit
from thalweg.engine.shared.tick.cut import Cut
from thalweg.engine.shared.tick.task import GroupSpec, Plan, TickSpec, stem_table
from thalweg.engine.shared.tick.task_assignment import Share

if TYPE_CHECKING:
    from thalweg.engine.shared.engine import SharedEngine


def tick_spec(
    engine: SharedEngine,
    cut: Cut,
    plan: Plan,
    floors: dict[str, int],
    *,
    shares: tuple[Share, ...],
    durable: bool,
) -> TickSpec:
    files = commit.landed_files(engine.store, cut)
    return TickSpec(
        folder=str(engine.folder),
        tick=cut.number,
        tasks=cut.tasks,
        plan=engine.plan_files.write("plan", plan),
        ranges=cut.ranges,
        landed={s: of for s, of in files.items() if s in plan.stems},
        segments=list(engine.segments.values()),
        orders=_orders(engine.store, plan),
        floors=floors,
        started={n: q.started for n, q in engine.runs.items() if q.started is not None},
        backfill=_backfill(engine.store, plan),
        groups={name: _group_spec(engine, name) for name in engine.generations},
        shares=shares,
        durable=durable,
    )


def floors_of(cut: Cut, plan: Plan) -> dict[str, int]:
    """Of each stream, the instant below which nobody looks at tuples after this tick."""
    reached = {flow: upto for flow, (_, upto) in cut.ranges.items()}
    return {s: floor_of(s, plan.flows, reached) for s in plan.stems}


def stems_of(store: Store) -> Stems:
    """The keys by which streams are indexed at present."""
    found: Stems = {}
    for stream, keys in store.all("SELECT stream, keys FROM stems ORDER BY stream, place"):
        found[stream] = (*found.get(stream, ()), pickle.loads(keys))
    return found


def _group_spec(engine: SharedEngine, name: str) -> GroupSpec:
    pushed = engine.pushed.get(name)
    return GroupSpec(engine.windows_of(name), None if pushed is None else pushed.file)


def _backfill(store: Store, plan: Plan) -> dict[str, tuple[str, list[str]]]:
    present = stems_of(store)
    found = {}
    for stream, keys in plan.stems.items():
        old = [stem_table(stream, k) for k in present.get(stream, ())]
        fresh = [t for k in keys if (t := stem_table(stream, k)) not in old]
        if old and fresh:
            found[stream] = (old[0], fresh)
    return found


def _orders(store: Store, plan: Plan) -> dict[str, list[list[int]]]:
    """Each join's probing orders, by the fan-outs seen so far."""
    fanouts: dict[str, dict[tuple[int, int], float]] = {}
    for probe, fanout in store.all("SELECT probe, fanout FROM fanouts"):
        join, start, target = probe.split("/")
        fanouts.setdefault(join, {})[int(start), int(target)] = fanout
    joins = {
        plan.name_of(op): op
        for flow in plan.flows
        for _, output in flow.outputs
        for op in ph.walk(output)
        if isinstance(op, ph.Join)
    }
    return {
        name: [probing_order(op, i, fanouts.get(name, {})) for i in range(len(op.inputs))]
        for name, op in joins.items()
    }
