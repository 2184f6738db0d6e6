"""A member's profile: what re-tightens the representative's rows to its own (COSMOS 3.2).

To make a member's result from the representative's interval rows: keep the rows that meet the
ranges and residuals; recompute each row's interval for the member's windows from the timestamps of
its sources, and drop the empty ones; project; net. Expressions are over the core's columns, so a
profile stays as it is when the representative comes to keep more of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from thalweg.plan.expr import Expr
from thalweg.plan.windows import TimeWindow
from thalweg.sharing.core import Core, Residual
from thalweg.sharing.plans import range_conditions
from thalweg.sharing.ranges import Range
from thalweg.sharing.representative import Representative


@dataclass(frozen=True, slots=True)
class Profile:
    windows: tuple[TimeWindow, ...]
    ranges: tuple[tuple[Expr, Range], ...]  # those that the representative does not imply
    residuals: tuple[Residual, ...]
    outputs: tuple[Expr, ...]

    @property
    def conditions(self) -> tuple[Expr, ...]:
        """What a row must meet, over the core's columns."""
        ranges = (c for expr, values in self.ranges for c in range_conditions(expr, values))
        return (*ranges, *(r.condition for r in self.residuals))

    def interval(self, timestamps: Sequence[int]) -> tuple[int, int]:
        """Where a row of sources so stamped is valid; empty where start >= end."""
        own = [w.interval(t) for w, t in zip(self.windows, timestamps, strict=True)]
        return max(start for start, _ in own), min(end for _, end in own)


def profile(core: Core, rep: Representative) -> Profile:
    """How to make a core's rows of the representative's, which must cover it."""
    given = dict(rep.ranges)
    return Profile(
        core.windows,
        tuple((e, r) for e, r in core.ranges if e not in given or not r.covers(given[e])),
        tuple(r for r in core.residuals if r not in rep.residuals),
        core.outputs,
    )
