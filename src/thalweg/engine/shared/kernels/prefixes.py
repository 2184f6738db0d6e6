"""Joins that begin alike: what one of them has bound on its way, the others need not probe again.

A query whose join contains another's uses the other's stream (SQPR II-B, equivalent streams). An
MJoin keeps no intermediate results, but it makes them: new tuples of S probe R on the way to S ⋈ R
and on the way to S ⋈ R ⋈ T alike. Where the sources, the keys and the conditions up to there are
the same, so are the rows; they are made once in a tick, with all columns that some join wants.

Joins over other streams are of other flows, which have to have come to the same instants for that.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass

from thalweg.engine.shared import physical as ph
from thalweg.engine.shared.kernels.probing import Step, steps
from thalweg.engine.shared.task import Flow, Plan, Task
from thalweg.plan.expr import Expr, remap

FAR = 1 << 20  # more columns than an input has

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


Place = tuple[str, str, int]  # flow, join, input
Routes = Mapping[Place, Route]
Classes = Mapping[str, int]  # of flows: those for which the same instants become final
OrderOf = Callable[[ph.Join, int], list[int]]


def routes_in(task: Task) -> Routes:
    """Those of this tick; mostly they are the last one's."""
    memo, ranges = task.plan.memo, task.spec.ranges
    numbers = {instants: number for number, instants in enumerate(dict.fromkeys(ranges.values()))}
    classes = {flow: numbers[instants] for flow, instants in ranges.items()}
    made_for = (classes, task.spec.orders)
    if memo.get("routes", (None,))[0] != made_for:
        memo["routes"] = made_for, routes(task.plan, classes, task.order)
    found: Routes = memo["routes"][1]
    return found


def routes(plan: Plan, classes: Classes, order_of: OrderOf) -> Routes:
    """Of all joins."""
    wanted: dict[Hashable, list[set[int]]] = {}
    users: dict[Hashable, int] = {}
    planned: dict[Place, tuple[tuple[Step, ...], list[Hashable]]] = {}
    for flow in plan.flows:
        for op in _joins(flow):
            for start in range(len(op.inputs)):
                of = steps(op, start, order_of(op, start))
                columns = [op.wanted[i] for i in (start, *(s.target for s in of))]
                keys = _keys(plan, flow, classes[flow.name], op, start, of)
                for length, key in enumerate(keys, 1):
                    users[key] = users.get(key, 0) + 1
                    known = wanted.setdefault(key, [set() for _ in range(length + 1)])
                    for have, more in zip(known, columns, strict=False):
                        have.update(more)
                planned[flow.name, plan.name_of(op), start] = of, keys
    return {
        place: Route(
            of,
            tuple(
                Prefix(key, length, tuple(tuple(sorted(c)) for c in wanted[key]))
                for length, key in enumerate(keys, 1)
                if users[key] > 1
            ),
        )
        for place, (of, keys) in planned.items()
    }


def _joins(flow: Flow) -> list[ph.Join]:
    ops = {id(o): o for _, output in flow.outputs for o in ph.walk(output)}
    return [op for op in ops.values() if isinstance(op, ph.Join)]


def _keys(
    plan: Plan,
    flow: Flow,
    instants: int,
    op: ph.Join,
    start: int,
    of: tuple[Step, ...],
) -> list[Hashable]:
    """What the first step is, the first two, and so on, as far as base streams are probed."""
    first = op.inputs[start]
    if not isinstance(first, ph.Source):
        return []
    depth = {start: 0, **{s.target: i for i, s in enumerate(of, 1)}}
    owners = [i for i, source in enumerate(op.inputs) for _ in source.types]

    def place(column: int) -> int:
        """A column by when its input is bound, not by where the query names it."""
        owner = owners[column]
        return depth[owner] * FAR + column - op.offsets[owner]

    def placed(exprs: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return tuple(remap(e, place) for e in exprs)

    key: Hashable = (instants, flow.horizon(first.stream), plan.name_of(first))
    keys = []
    for step in of:
        target = op.inputs[step.target]
        if not isinstance(target, ph.Source):
            break
        sees_new = step.target > start
        checks = frozenset(placed(step.checks))
        how = (sees_new, step.index, placed(step.probe), checks)
        key = (key, flow.horizon(target.stream), plan.name_of(target), how)
        keys.append(key)
    return keys
