"""Joins that begin alike: what one of them has bound on its way, the others need not probe again.

A query whose join contains another's uses the other's stream (SQPR II-B, equivalent streams). An
MJoin keeps no intermediate results, but it makes them: new tuples of S probe R on the way to S ⋈ R
and on the way to S ⋈ R ⋈ T alike. Where the sources, the keys and the conditions up to there are
the same, so are the rows; they are made once in a tick, with all columns that some join wants.

Joins over other streams are of other flows, which must have reached the same frontier for that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.kernels.join.join_signature import JoinSignature
from thalweg.engine.shared.kernels.join.probing import Step, steps
from thalweg.engine.shared.kernels.join.shapes import Inputs
from thalweg.engine.shared.kernels.join.shared_probe import Consumer, ProbeKey, SharedProbe
from thalweg.engine.shared.tick.messages import ShapeSpec
from thalweg.engine.shared.tick.plan import Flow, Plan
from thalweg.engine.shared.tick.task import Task

Columns = tuple[tuple[int, ...], ...]  # of each input in the order of binding


@dataclass(frozen=True, slots=True)
class Prefix:
    """The first steps of a probing plan that several joins have in common."""

    key: Hashable
    length: int  # in steps
    columns: Columns  # that some join wants


@dataclass(frozen=True, slots=True)
class Route:
    """How one input's delta goes through the others, and what it has in common, longest last."""

    steps: tuple[Step, ...]
    prefixes: tuple[Prefix, ...]
    shared: SharedProbe | None = None  # where other joins begin, too, but not quite alike
    consumer: int = 0  # which of its consumers this join is
    kept: tuple[tuple[int, Inputs], ...] = ()  # after how many steps what is to be kept is there


Place = tuple[str, str, int]  # flow, join, input
Routes = Mapping[Place, Route]
Classes = Mapping[str, int]  # of flows: those for which the same instants become final
OrderOf = Callable[[ph.Join, int], list[int]]
ShapeOf = Callable[[Flow, ph.Join], ShapeSpec | None]  # None: an MJoin


def routes_in(task: Task) -> Routes:
    """Those of this tick; mostly they are the last one's."""
    memo, ranges = task.plan.memo, task.spec.ranges
    numbers = {instants: number for number, instants in enumerate(dict.fromkeys(ranges.values()))}
    classes = {flow: numbers[instants] for flow, instants in ranges.items()}
    made_for = (classes, task.spec.orders, task.spec.shapes)
    if memo.get("routes", (None,))[0] != made_for:
        memo["routes"] = made_for, routes(task.plan, classes, task.order, task.shape)
    found: Routes = memo["routes"][1]
    return found


def routes(
    plan: Plan, classes: Classes, order_of: OrderOf, shape_of: ShapeOf = lambda flow, op: None
) -> Routes:
    """Of all joins."""
    ways, kept = {}, {}
    for flow in plan.flows:
        for op in _joins(flow):
            shape = shape_of(flow, op)
            for start in range(len(op.inputs)):
                place = flow.name, plan.name_of(op), start
                planned = _planned(op, start, order_of, shape)
                ways[place] = JoinSignature(plan, flow, classes[flow.name], op, start, planned)
                kept[place] = _made_on_the_way(start, planned, shape)
    prefixes, shared_probes = _prefixes(ways.values()), _shared_probes(ways.values())
    found = {}
    for place, way in ways.items():
        # What is to be kept has to pass here.
        most = min((length for length, _ in kept[place]), default=len(way.steps))
        in_common = tuple(prefixes[k] for k in way.keys[:most] if k in prefixes)
        shared = shared_probes.get(way.probe) if way.probe is not None else None
        consumer = 0 if shared is None else shared.consumers.index(way.consumer)
        found[place] = Route(way.steps, in_common, shared, consumer, kept[place])
    return found


def _planned(
    op: ph.Join, start: int, order_of: OrderOf, shape: ShapeSpec | None
) -> tuple[Step, ...]:
    if shape is None:
        return steps(op, start, order_of(op, start))
    return steps(op, start, shape.orders[start], shape.kept, shape.usable)


def _made_on_the_way(
    start: int, planned: Iterable[Step], shape: ShapeSpec | None
) -> tuple[tuple[int, Inputs], ...]:
    bound, found = {start}, []
    for length, step in enumerate(planned, 1):
        bound.update(step.binds)
        found += [(length, k) for k in (shape.kept if shape else ()) if bound == set(k)]
    return tuple(found)


def _prefixes(ways: Iterable[JoinSignature]) -> dict[Hashable, Prefix]:
    """What several joins do alike in their first steps."""
    wanted: dict[Hashable, list[set[int]]] = {}
    users: Counter[Hashable] = Counter()
    for way in ways:
        for length, key in enumerate(way.keys, 1):
            users[key] += 1
            known = wanted.setdefault(key, [set() for _ in range(length + 1)])
            for have, more in zip(known, way.columns, strict=False):
                have.update(more)
    return {
        key: Prefix(key, len(columns) - 1, tuple(tuple(sorted(c)) for c in columns))
        for key, columns in wanted.items()
        if users[key] > 1
    }


def _shared_probes(ways: Iterable[JoinSignature]) -> dict[ProbeKey, SharedProbe]:
    """Where several joins begin with the same probe, but ask for different pairs."""
    consumers: dict[ProbeKey, dict[Consumer, None]] = {}
    columns: dict[ProbeKey, tuple[set[int], set[int]]] = {}
    for way in ways:
        if way.probe is None:
            continue
        consumers.setdefault(way.probe, {})[way.consumer] = None
        known = columns.setdefault(way.probe, (set(), set()))
        for have, more in zip(known, way.looked_at, strict=True):
            have.update(more)
    return {
        key: SharedProbe(key, tuple(tuple(sorted(c)) for c in columns[key]), tuple(of))
        for key, of in consumers.items()
        if len(of) > 1
    }


def _joins(flow: Flow) -> list[ph.Join]:
    return [op for op in flow.operators if isinstance(op, ph.Join)]
