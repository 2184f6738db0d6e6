"""A tick's specification: all that its tasks need to know, gathered by the driver."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.compile.planning import floor_of
from thalweg.engine.shared.kernels.join.probing import probing_order
from thalweg.engine.shared.state.names import Table, stem_table
from thalweg.engine.shared.state.segments import Segment
from thalweg.engine.shared.state.store import Store
from thalweg.engine.shared.tick.cut import Cut
from thalweg.engine.shared.tick.messages import GroupSpec, NewTuples, TickSpec
from thalweg.engine.shared.tick.plan import Plan
from thalweg.engine.shared.tick.shaping.shaping import TickShapes
from thalweg.engine.shared.tick.task_assignment import Share
from thalweg.plan.windows import BEGINNING, FOREVER


def tick_spec(
    store: Store,
    cut: Cut,
    plan: Plan,
    *,
    plan_file: str,
    segments: Iterable[Segment],
    started: Mapping[str, int],
    groups: dict[str, GroupSpec],
    shares: tuple[Share, ...],
    held: dict[str, bytes],
    starts: tuple[int, ...] = (),
    buckets: tuple[int, ...] = (),
    most_merged: int | None = None,
    shapes: TickShapes | None = None,
) -> TickSpec:
    shaped = shapes or TickShapes()
    return TickSpec(
        files=store.files,
        tick=cut.number,
        tasks=cut.tasks,
        plan=plan_file,
        ranges=cut.ranges,
        landed={s: of for s, of in _landed(store, cut).items() if s in plan.stems},
        ended=cut.ended(),
        segments=[s for s in segments if shaped.is_readable(s)],
        orders=_orders(store, plan),
        floors=floors_of(cut, plan),
        started=dict(started),
        backfill=_backfill(store, plan),
        groups=groups,
        reduced=cut.reduced,
        rejects_from={s: store.inputs.relation(s).reported for s in plan.signed},
        shares=shares,
        starts=starts,
        buckets=buckets,
        held=held,
        most_merged=most_merged,
        shapes=shaped.specs,
        samples=shaped.samples,
    )


def floors_of(cut: Cut, plan: Plan) -> dict[str, int]:
    """Of each stream, the instant below which tuples are not kept after this tick."""
    reached = {flow: upto for flow, (_, upto) in cut.ranges.items()}
    needed = {s: floor_of(s, plan.flows, reached) for s in plan.stems}
    return {
        s: BEGINNING if s in plan.signed else min(floor, cut.retained.get(s, FOREVER))
        for s, floor in needed.items()
    }


def _landed(store: Store, cut: Cut) -> dict[str, list[NewTuples]]:
    """A cut's tuples by stream, in order of arrival."""
    wanted = set(cut.landed)
    found: dict[str, list[NewTuples]] = {}
    divided, contents = store.inputs.divided(), store.inputs.contents(cut.landed)
    for id_, landed in store.inputs.landed():
        if id_ in wanted and landed.section is not None:
            new = NewTuples(
                landed.section,
                landed.floor,
                landed.shift,
                divided.get(id_, {}),
                contents.get(id_),
            )
            found.setdefault(landed.stream, []).append(new)
    return found


def _backfill(store: Store, plan: Plan) -> dict[str, tuple[Table, list[Table]]]:
    present = store.inputs.stems()
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
    for probe, fanout in store.fanouts().items():
        join, start, target = probe.split("/")
        fanouts.setdefault(join, {})[int(start), int(target)] = fanout
    joins = {plan.name_of(op): op for _, op in plan.operators if isinstance(op, ph.Join)}
    return {
        name: [probing_order(op, i, fanouts.get(name, {})) for i in range(len(op.inputs))]
        for name, op in joins.items()
    }
