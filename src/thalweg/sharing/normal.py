"""From a plan to its normal form, or to the reason why it has none.

The order of the work: flatten the plan to one block and the steps above it; put leaves in order;
rewrite each condition; write equalities as classes; tell joins, ranges and residuals apart. Each
is a rule of `thalweg.sharing.rules`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from thalweg.plan.expr import Expr
from thalweg.plan.nodes import Node, Project, Scan, StreamKind, ToStream, Window
from thalweg.plan.windows import UNBOUNDED
from thalweg.sharing.block import Block, Leaf, Unshareable
from thalweg.sharing.conditions import classified
from thalweg.sharing.core import Computed, Core, Kept, NormalQuery, NotNormal, Step, slides_of
from thalweg.sharing.ordering import expr_key
from thalweg.sharing.rules import conditions_of, rewritten
from thalweg.sharing.rules.drop_identities import drop_identities
from thalweg.sharing.rules.flatten import flatten
from thalweg.sharing.rules.merge_equalities import merge_equalities
from thalweg.sharing.rules.merge_steps import merge_steps
from thalweg.sharing.rules.order_groups import order_groups
from thalweg.sharing.rules.order_leaves import Order, column_places, leaf_orders, moved


def normalise(plan: Node) -> NormalQuery | NotNormal:
    relation, kind = plan, None
    if isinstance(plan, ToStream):
        relation, kind = plan.input, plan.kind
    elif isinstance(plan, Scan) and plan.is_stream:
        # A stream by itself prints its tuples as they come.
        relation, kind = Window(plan, UNBOUNDED), StreamKind.ISTREAM
    if kind is StreamKind.RSTREAM:
        return NotNormal("RSTREAM repeats the whole relation, also when nothing in it changed")
    try:
        block = flatten(relation)
    except Unshareable as reason:
        return NotNormal(str(reason))
    if block.above:
        block = merge_steps(block)
    core, above = _smallest([_ordered(block, order) for order in leaf_orders(block.leaves)])
    return NormalQuery(core, above, kind, _names(relation))


def _names(relation: Node) -> tuple[str, ...]:
    if isinstance(relation, Project):
        return relation.names
    return tuple(f.name for f in relation.schema)


def _ordered(block: Block, order: Order) -> tuple[Core, tuple[Step, ...]]:
    leaves = tuple([block.leaves[i] for i in order])
    places = column_places(block.leaves, order)
    outputs = tuple([rewritten(moved(e, places)) for e in block.exprs()])
    conditions = [moved(c, places) for c in block.conditions]
    core = core_of(leaves, conditions, outputs)
    if not block.above:
        return core, ()
    outputs, above = order_groups(core.outputs, tuple([_rewritten_step(s) for s in block.above]))
    return replace(core, outputs=outputs), drop_identities(above, len(outputs))


def core_of(leaves: Sequence[Leaf], conditions: Iterable[Expr], outputs: tuple[Expr, ...]) -> Core:
    """The normal form of conditions and outputs over leaves that stand in order."""
    starts, width = [], 0
    for leaf in leaves:
        starts.append(width)
        width += len(leaf.stream.fields)
    parts = [part for c in conditions for part in conditions_of(c)]
    merged = merge_equalities(parts, outputs, starts)
    found = classified(merged.equalities, merged.others, width)
    return Core(
        tuple([leaf.stream for leaf in leaves]),
        tuple([leaf.window for leaf in leaves]),
        found.joins,
        found.ranges,
        found.residuals,
        merged.outputs,
    )


def _rewritten_step(step: Step) -> Step:
    match step:
        case Kept(predicate):
            return Kept(rewritten(predicate))
        case Computed(exprs):
            return Computed(tuple([rewritten(e) for e in exprs]))
        case _:
            return step


def _smallest(found: list[tuple[Core, tuple[Step, ...]]]) -> tuple[Core, tuple[Step, ...]]:
    """Joins and slides decide first, so that self-joins of one shape have one signature."""
    return found[0] if len(found) == 1 else min(found, key=lambda f: _form_key(f[0]))


def _form_key(core: Core) -> tuple[object, ...]:
    return (
        [expr_key(j) for j in core.joins],
        slides_of(core.windows),
        [-1 if w.length is None else w.length for w in core.windows],
        [(expr_key(e), str(r)) for e, r in core.ranges],
        [(expr_key(r.template), repr(r.constants)) for r in core.residuals],
        [expr_key(e) for e in core.outputs],
    )
