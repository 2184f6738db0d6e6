"""Aggregates of many queries at once: each operator with the member as one more key.

Queries that are alike but for constants and windows have the same operators above their cores. One
tree of operators runs for all of them: what every row and every group of rows belongs to is told by
a first column, the member's place in its family.

Where the aggregate is one of a stream under a sliding window, and all members have that window, it
is computed from partial aggregates (`panes`). Then no tuple has to be kept: the group below is one
of tuples that come and never go, and the window stands above the partial aggregates.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.compile.blocks import by_row, distinct, identity, nameless
from thalweg.engine.shared.compile.panes import add_up, over_panes, pane_width
from thalweg.plan.aggregates import AggCall
from thalweg.plan.expr import TRUE, Col, Expr, shift
from thalweg.plan.nodes import StreamKind
from thalweg.plan.types import BIGINT
from thalweg.plan.windows import TimeWindow
from thalweg.sharing.core import Computed, Core, Grouped, Kept, Step, WithoutRepeats

MEMBER = Col(0, BIGINT)


@dataclass(frozen=True, slots=True)
class Paned:
    """A sliding window, and the width of its panes."""

    window: TimeWindow
    width: int


def paned_window(core: Core, above: tuple[Step, ...]) -> Paned | None:
    """How a query's aggregate can be made of partial ones."""
    if len(core.streams) > 1 or not above or not isinstance(above[0], Grouped):
        return None
    (window,), (stream,) = core.windows, core.streams
    width = pane_width(window, stream.resolution_us)
    return Paned(window, width) if width > 1 and add_up(above[0].aggregates) else None


def member_aggregates(
    group: ph.Group,
    name: str,
    outputs: tuple[Expr, ...],
    above: tuple[Step, ...],
    kind: StreamKind | None,
    paned: Paned | None = None,
) -> ph.Output:
    """What the members of the named group say; the first column is the member."""
    relation: ph.Op = ph.Matches(group, name, (BIGINT, *(e.type for e in outputs)))
    if paned is not None:
        first, *above_it = above
        assert isinstance(first, Grouped)
        by, calls = _by_member(first)
        over = over_panes(relation, paned.window, paned.width, by, calls)
        relation, above = replace(over, lasting=not first.keys), tuple(above_it)
    for step in above:
        relation = _above(relation, step)
    return ph.Output(by_row(relation), kind)


def _above(below: ph.Op, step: Step) -> ph.Op:
    match step:
        case Grouped():
            by, calls = _by_member(step)
            return ph.Aggregate(ph.Exchange(below, by), by, calls, lasting=not step.keys)
        case Kept(predicate):
            return ph.Map(below, _moved(predicate), identity(below))
        case Computed(exprs):
            return ph.Map(below, TRUE, (MEMBER, *(_moved(e) for e in exprs)))
        case WithoutRepeats():
            return distinct(below)


def _by_member(step: Grouped) -> tuple[tuple[Expr, ...], tuple[AggCall, ...]]:
    keys = (MEMBER, *(_moved(k) for k in step.keys))
    return keys, tuple(_moved_call(c) for c in step.aggregates)


def _moved(expr: Expr) -> Expr:
    return shift(nameless(expr), 1)


def _moved_call(call: AggCall) -> AggCall:
    return AggCall(call.function, None if call.arg is None else _moved(call.arg), call.distinct)
