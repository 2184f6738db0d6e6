"""The steps above a core: as few as say the same.

Neighbouring projections become one, and so do neighbouring filters; a filter stands below a
projection. A projection below GROUP BY is drawn into its keys and arguments. A condition of HAVING
on keys alone holds for a group where it holds for its rows, and goes down to them.
"""

from __future__ import annotations

from dataclasses import replace

from thalweg.plan.blocks import over
from thalweg.plan.expr import Expr, columns_of, conjunction
from thalweg.sharing.block import Block, call_over
from thalweg.sharing.core import Computed, Grouped, Kept, Step, WithoutRepeats
from thalweg.sharing.rules import conditions_of
from thalweg.sharing.rules.drop_identities import drop_identities


def merge_steps(block: Block) -> Block:
    steps: list[Step] = []
    lowered: list[Expr] = []
    width = block.width if block.outputs is None else len(block.outputs)
    for step in drop_identities(block.above, width):
        below = steps[-1] if steps else None
        match step, below:
            case Computed(exprs), Computed(inner):
                steps[-1] = Computed(tuple(over(inner, e) for e in exprs))
            case Kept(predicate), Computed(inner):
                steps.pop()
                lowered += _keep(steps, over(inner, predicate), block)
                steps.append(below)
            case Kept(predicate), _:
                lowered += _keep(steps, predicate, block)
            case Grouped(keys, calls), Computed(inner):
                grouped = Grouped(
                    tuple(over(inner, k) for k in keys), tuple(call_over(inner, c) for c in calls)
                )
                steps[-1] = grouped
            case WithoutRepeats(), WithoutRepeats():
                pass
            case _:
                steps.append(step)
    conditions = (*block.conditions, *lowered)
    return replace(block, conditions=conditions, above=tuple(steps))


def _keep(steps: list[Step], predicate: Expr, block: Block) -> list[Expr]:
    """Put a filter on top of the steps; give back what the core can check instead."""
    lowered: list[Expr] = []
    kept: list[Expr] = []
    if steps and isinstance(steps[-1], Kept):
        kept.append(steps.pop().predicate)  # type: ignore[union-attr]
    first = steps[0] if len(steps) == 1 else None
    for condition in conditions_of(predicate):
        if isinstance(first, Grouped) and _on_keys(condition, first):
            keys = tuple(over(block.outputs, k) for k in first.keys)
            lowered.append(over(keys, condition))
        else:
            kept.append(condition)
    if kept:
        steps.append(Kept(conjunction(kept)))
    return lowered


def _on_keys(condition: Expr, grouped: Grouped) -> bool:
    used = columns_of(condition)
    return bool(used) and max(used) < len(grouped.keys)
