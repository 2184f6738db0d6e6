"""A projection of all columns as they stand does nothing, and goes."""

from __future__ import annotations

from thalweg.plan.expr import Col, Expr
from thalweg.sharing.core import Computed, Grouped, Step


def drop_identities(above: tuple[Step, ...], width: int) -> tuple[Step, ...]:
    """`width` is the number of the core's outputs."""
    kept: list[Step] = []
    for step in above:
        if isinstance(step, Computed):
            if _is_identity(step.exprs, width):
                continue
            width = len(step.exprs)
        elif isinstance(step, Grouped):
            width = len(step.keys) + len(step.aggregates)
        kept.append(step)
    return tuple(kept)


def _is_identity(exprs: tuple[Expr, ...], width: int) -> bool:
    return len(exprs) == width and all(
        isinstance(e, Col) and e.index == i for i, e in enumerate(exprs)
    )
