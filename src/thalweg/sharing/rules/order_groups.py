"""GROUP BY over a core: the core computes just its keys and arguments, all in one order.

What stands above sees keys and aggregates where it expects them, by way of a projection.
"""

from __future__ import annotations

from thalweg.plan.aggregates import AggCall
from thalweg.plan.blocks import over
from thalweg.plan.expr import Col, Expr
from thalweg.sharing.core import Computed, Grouped, Kept, Step
from thalweg.sharing.ordering import expr_key, in_order
from thalweg.sharing.rules import rewritten


def order_groups(
    outputs: tuple[Expr, ...], above: tuple[Step, ...]
) -> tuple[tuple[Expr, ...], tuple[Step, ...]]:
    """The core's outputs and the steps above it."""
    if not (above and isinstance(above[0], Grouped)):
        return outputs, above
    grouped, *rest = above
    assert isinstance(grouped, Grouped)
    keys = [rewritten(over(outputs, k)) for k in grouped.keys]
    args = [None if c.arg is None else rewritten(over(outputs, c.arg)) for c in grouped.aggregates]
    needed = in_order([*keys, *(a for a in args if a is not None)])
    places = {e: Col(i, e.type) for i, e in enumerate(needed)}
    wanted_keys = [places[k] for k in keys]
    wanted_calls = [
        AggCall(c.function, None if a is None else places[a], c.distinct)
        for c, a in zip(grouped.aggregates, args, strict=True)
    ]
    ordered_keys = in_order(wanted_keys)
    ordered_calls = tuple(sorted(dict.fromkeys(wanted_calls), key=_call_key))
    count = len(ordered_keys)
    shown = [Col(ordered_keys.index(k), k.type) for k in wanted_keys]
    shown += [Col(count + ordered_calls.index(c), c.type) for c in wanted_calls]
    return needed, (Grouped(ordered_keys, ordered_calls), *_seen_through(tuple(shown), rest))


def _call_key(call: AggCall) -> tuple[str, bool, str]:
    return call.function, call.distinct, "" if call.arg is None else expr_key(call.arg)


def _seen_through(shown: tuple[Expr, ...], steps: list[Step]) -> list[Step]:
    """The steps over reordered columns; the projection `shown` is drawn into the first that can."""
    seen: list[Step] = []
    for place, step in enumerate(steps):
        if isinstance(step, Kept):
            seen.append(Kept(over(shown, step.predicate)))
            continue
        if isinstance(step, Computed):
            shown = tuple(over(shown, e) for e in step.exprs)
            place += 1
        return [*seen, Computed(shown), *steps[place:]]
    return [*seen, Computed(shown)]
