"""What two runs share below their groups: partial aggregates, and the beginnings of joins."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.kernels.join.prefixes import routes
from thalweg.engine.shared.kernels.join.probing import probing_order
from thalweg.engine.shared.tick.plan import Flow, Plan


def in_common(plan: Plan, runs: tuple[str, str]) -> Iterator[str]:
    """A sentence for each kind of work that two runs do once."""
    found = {name: (flow, op) for flow in plan.flows for name, op in flow.outputs}
    if runs[0] == runs[1] or any(run not in found for run in runs):
        return
    (flow, op), (other_flow, other) = (found[run] for run in runs)
    if flow is other_flow and _partials(op) & _partials(other):
        yield "Their partial aggregates are the same: what a pane adds to a group is kept once."
    if _signatures(plan, flow, op) & _signatures(plan, other_flow, other):
        yield (
            "Their joins begin alike: that part is probed once in every tick in which both come "
            "to the same instant."
        )


def _partials(op: ph.AnyOp) -> set[ph.Partials]:
    return {o for o in ph.walk(op) if isinstance(o, ph.Partials)}


def _signatures(plan: Plan, flow: Flow, op: ph.AnyOp) -> set[Hashable]:
    found = routes(plan, {f.name: 0 for f in plan.flows}, lambda j, i: probing_order(j, i, {}))
    joins = {plan.name_of(o) for o in ph.walk(op) if isinstance(o, ph.Join)}
    return {
        prefix.key
        for (of, join, _), route in found.items()
        if of == flow.name and join in joins
        for prefix in route.prefixes
    }
