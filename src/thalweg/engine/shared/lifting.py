"""Aggregates of many queries at once: each operator with the member as one more key.

Queries that are alike but for constants and windows have the same operators above their cores. One
tree of operators runs for all of them: what every row and every group of rows belongs to is told by
a first column, the member's place in its family.
"""

from __future__ import annotations

from thalweg.engine.shared import physical as ph
from thalweg.engine.shared.blocks import by_row, distinct, identity, nameless
from thalweg.plan.aggregates import AggCall
from thalweg.plan.expr import TRUE, Col, Expr, shift
from thalweg.plan.nodes import StreamKind
from thalweg.plan.types import BIGINT
from thalweg.sharing.core import Computed, Grouped, Kept, Step, WithoutRepeats

MEMBER = Col(0, BIGINT)


def lifted(
    group: ph.Group,
    name: str,
    outputs: tuple[Expr, ...],
    above: tuple[Step, ...],
    kind: StreamKind | None,
) -> ph.Output:
    """What the members of the named group say; the first column is the member."""
    relation: ph.Op = ph.Matches(group, name, (BIGINT, *(e.type for e in outputs)))
    for step in above:
        relation = _above(relation, step)
    return ph.Output(by_row(relation), kind)


def _above(below: ph.Op, step: Step) -> ph.Op:
    match step:
        case Grouped(keys, calls):
            by = (MEMBER, *(_moved(k) for k in keys))
            moved = tuple(_moved_call(c) for c in calls)
            return ph.Aggregate(ph.Exchange(below, by), by, moved, lasting=not keys)
        case Kept(predicate):
            return ph.Map(below, _moved(predicate), identity(below))
        case Computed(exprs):
            return ph.Map(below, TRUE, (MEMBER, *(_moved(e) for e in exprs)))
        case WithoutRepeats():
            return distinct(below)


def _moved(expr: Expr) -> Expr:
    return shift(nameless(expr), 1)


def _moved_call(call: AggCall) -> AggCall:
    return AggCall(call.function, None if call.arg is None else _moved(call.arg), call.distinct)
