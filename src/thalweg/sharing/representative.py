"""The representative of a group of queries: one query that contains them all (COSMOS 3.2).

It has the loosest window of each leaf (theorem 3.1), of each expression that all members restrict
the hull of their ranges, the residuals that all have, and the columns that anyone needs. What it
keeps is interval rows with every source's timestamp, not yet netted: from these a member's profile
makes the member's own result.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

from thalweg.plan.catalog import StreamDef
from thalweg.plan.expr import Col, Expr, children
from thalweg.plan.nodes import Node
from thalweg.plan.windows import TimeWindow
from thalweg.sharing.core import Core, Residual, Signature, signature_of, slides_of
from thalweg.sharing.plans import core_plan, fields_of
from thalweg.sharing.ranges import EVERYTHING, Range


@dataclass(frozen=True, slots=True)
class Representative:
    streams: tuple[StreamDef, ...]
    windows: tuple[TimeWindow, ...]
    joins: tuple[Expr, ...]
    ranges: tuple[tuple[Expr, Range], ...]
    residuals: tuple[Residual, ...]
    attributes: tuple[int, ...]  # the core's columns that are kept, sorted

    @property
    def signature(self) -> Signature:
        return signature_of(self.streams, slides_of(self.windows), self.joins)

    def covers(self, core: Core) -> bool:
        """Whether the core's result can be made of this one's, columns included."""
        own = dict(core.ranges)
        return (
            self._is_of_one_shape_with(core)
            and all(map(at_least_as_long, self.windows, core.windows))
            and all(e in own and values.covers(own[e]) for e, values in self.ranges)
            and all(r in core.residuals for r in self.residuals)
            and needed_columns(core).issubset(self.attributes)
        )

    def merged(self, core: Core) -> Representative:
        """The smallest representative that covers this one's members and the core."""
        if not self._is_of_one_shape_with(core):
            raise ValueError("queries of different signatures have no common representative")
        own = dict(core.ranges)
        hulls = ((e, values.hull(own[e])) for e, values in self.ranges if e in own)
        return Representative(
            self.streams,
            tuple(map(longer, self.windows, core.windows)),
            self.joins,
            tuple((e, hull) for e, hull in hulls if hull != EVERYTHING),
            tuple(r for r in self.residuals if r in core.residuals),
            tuple(sorted(needed_columns(core).union(self.attributes))),
        )

    def to_core(self) -> Core:
        fields = fields_of(self.streams)
        outputs = tuple(Col(i, fields[i].type) for i in self.attributes)
        return Core(self.streams, self.windows, self.joins, self.ranges, self.residuals, outputs)

    def to_plan(self) -> Node:
        """A plan whose columns are the attributes."""
        return core_plan(self.to_core())

    def _is_of_one_shape_with(self, core: Core) -> bool:
        return (
            self.joins == core.joins
            and (self.streams is core.streams or self.streams == core.streams)
            and slides_of(self.windows) == slides_of(core.windows)
        )


def representative(cores: Iterable[Core]) -> Representative:
    """The smallest representative of one core or more, all of one signature."""
    first, *others = cores
    return reduce(Representative.merged, others, _alone(first))


def _alone(core: Core) -> Representative:
    attributes = tuple(sorted(needed_columns(core)))
    return Representative(
        core.streams, core.windows, core.joins, core.ranges, core.residuals, attributes
    )


def needed_columns(core: Core) -> set[int]:
    """The columns that a core's outputs, ranges and residuals read; joins are not re-checked."""
    found: set[int] = set()
    for e in core.outputs:
        _collect(e, found)
    for e, _ in core.ranges:
        _collect(e, found)
    for residual in core.residuals:
        own: set[int] = set()
        _collect(residual.template, own)
        found.update(c for c in own if c < residual.width)  # the others are its constants
    return found


def _collect(expr: Expr, found: set[int]) -> None:
    if isinstance(expr, Col):
        found.add(expr.index)
        return
    for child in children(expr):
        _collect(child, found)


def at_least_as_long(window: TimeWindow, other: TimeWindow) -> bool:
    """Of windows of one slide: whether what is in the other is in this one."""
    if window.length is None or other.length is None:
        return window.length is None
    return window.length >= other.length


def longer(window: TimeWindow, other: TimeWindow) -> TimeWindow:
    return window if at_least_as_long(window, other) else other
