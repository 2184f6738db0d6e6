"""Which plans can be partitioned, and which ways can move them: the reason, or None.

NETWORK: what may stand below a netting union; D-CAPE leaves all operators but joins to future
work. PTLB is exact where results with an old part and results without one add up to the result:
for select, project, joins and UNION ALL over windows that forget. What is not linear stands above
the union.
"""

from __future__ import annotations

from thalweg.adapt.moves.operators import not_linear
from thalweg.adapt.moves.ways import PTLB
from thalweg.plan.nodes import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    LeftJoin,
    Mark,
    Node,
    Project,
    Scan,
    SetKind,
    SetOp,
    TopK,
    ToStream,
    Window,
)
from thalweg.plan.windows import RowsWindow, TimeWindow


def refusal(way: str, plan: Node) -> str | None:
    """Why this way can't move this fragment; None if it can."""
    return _not_linear(plan) if way == PTLB else _without_key(plan)


def _not_linear(plan: Node) -> str | None:
    """What ends PTLB's sum of two tracks, or never lets the old one end."""
    if isinstance(plan, Scan):
        if plan.stream.is_relation:
            return f"{plan.stream.name} is a relation: its old rows may stay for ever; use precopy"
        return f"{plan.stream.name} has no window: its old rows stay for ever; use precopy"
    if isinstance(plan, Window):
        if isinstance(plan.spec, TimeWindow) and plan.spec.length is not None:
            return None
        return f"old rows of {plan.spec} have no instant at which they are gone; use precopy"
    if isinstance(plan, Filter | Project):
        return _not_linear(plan.input)
    if isinstance(plan, Join):
        return next((r for i in plan.inputs if (r := _not_linear(i)) is not None), None)
    if isinstance(plan, SetOp) and plan.kind is SetKind.UNION and plan.all:
        return _not_linear(plan.left) or _not_linear(plan.right)
    return not_linear(type(plan).__name__)


def _without_key(plan: Node) -> str | None:
    """What has no key is copied whole, not cut into buckets."""
    if isinstance(plan, Aggregate) and not plan.keys:
        return "an aggregate without keys has no buckets: its partials have; or move it whole"
    if (
        isinstance(plan, Window)
        and isinstance(plan.spec, RowsWindow)
        and not plan.spec.partition_by
    ):
        return f"{plan.spec} counts rows of all keys: it has no buckets; move it whole"
    if isinstance(plan, Mark) and plan.match is not None:
        return "IN depends on the NULLs and the emptiness of the whole sub-query: move it whole"
    return next((r for i in _inputs(plan) if (r := _without_key(i)) is not None), None)


def _inputs(plan: Node) -> tuple[Node, ...]:
    if isinstance(plan, Join):
        return plan.inputs
    if isinstance(plan, LeftJoin | SetOp):
        return plan.left, plan.right
    if isinstance(plan, Mark):
        return plan.input, plan.subquery
    if isinstance(plan, Window | Filter | Project | Aggregate | Distinct | TopK | ToStream):
        return (plan.input,)
    return ()
