"""The normal forms of plans that differ in constants alone.

A condition that compares a column with a constant (`v >= 3`) goes through all rules of the normal
form as it stands, at most with another column of its class, and becomes a range of that column,
whatever the constant is. So of plans that are the same but for such constants one has to be brought
to its normal form, and in those of the others only ranges differ.

All else is left to `normalise`: a plan of which a part was dropped because it equals another, other
constants in conditions of another kind, and joins of a stream with itself, where the ranges decide
which leaf comes first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from thalweg.plan.expr import Call, Col, Expr, Lit, conjunction, conjuncts
from thalweg.plan.nodes import Filter, Node, Project, StreamKind, ToStream
from thalweg.sharing.conditions import RANGES
from thalweg.sharing.core import Core, NormalQuery, NotNormal
from thalweg.sharing.discrete import range_of
from thalweg.sharing.interning import Pool
from thalweg.sharing.normal import normalise
from thalweg.sharing.ranges import EVERYTHING, Range

Ranges = dict[Expr, Range]


class Alike:
    """Plans that are probably alike; their normal forms share parts with all of a pool."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._plans = 0
        self._frame: _Frame | None = None

    def normal(self, plan: Node) -> NormalQuery | NotNormal:
        self._plans += 1
        if self._plans == 2:  # for one by itself it would not pay
            self._frame = _frame(plan, self._pool)
        found = self._frame.normal(plan) if self._frame is not None else None
        if found is not None:
            return found
        made = normalise(plan)
        return self._pool.normal(made) if isinstance(made, NormalQuery) else made


class _Block(NamedTuple):
    """A selection and projection, with its condition taken apart."""

    kind: StreamKind | None
    project: Project
    source: Node
    parts: tuple[Expr, ...]

    def with_parts(self, parts: Sequence[Expr]) -> Node:
        rows = Filter(self.source, conjunction(list(parts))) if parts else self.source
        plan = Project(rows, self.project.exprs, self.project.names)
        return plan if self.kind is None else ToStream(self.kind, plan)

    def is_like(self, other: _Block) -> bool:
        """But for the parts; by identity, which is what plans of one origin have in common."""
        return (
            self.source is other.source
            and self.project.exprs is other.project.exprs
            and self.project.names is other.project.names
            and self.kind is other.kind
            and len(self.parts) == len(other.parts)
        )


def _block(plan: Node) -> _Block | None:
    kind = None
    if isinstance(plan, ToStream):
        kind, plan = plan.kind, plan.input
    match plan:
        case Project(Filter(source, condition), _, _):
            return _Block(kind, plan, source, conjuncts(condition))
        case _:
            return None


@dataclass(frozen=True, slots=True)
class _Frame:
    block: _Block
    ranged: tuple[Expr | None, ...]  # by part: the column of which it is a range
    form: NormalQuery  # without these ranges
    order: tuple[Expr, ...]  # in which ranges stand

    def normal(self, plan: Node) -> NormalQuery | None:
        """The normal form of a plan that is like this one's; None if it is not."""
        block = _block(plan)
        if block is None or not block.is_like(self.block):
            return None
        ranges = dict(self.form.core.ranges)
        for part, own, column in zip(block.parts, self.block.parts, self.ranged, strict=True):
            if column is not None:
                values = _range(part, own)
                if values is None:
                    return None
                ranges[column] = ranges[column].meet(values) if column in ranges else values
            elif part is not own:
                return None
        in_order = tuple([(e, ranges[e]) for e in self.order])
        core, form = self.form.core, self.form
        filled = Core(
            core.streams, core.windows, core.joins, in_order, core.residuals, core.outputs
        )
        return NormalQuery(filled, form.above, form.kind, form.names)


def _range(part: Expr, like: Expr) -> Range | None:
    """The values that a comparison leaves, if it is one like the other."""
    match part, like:
        case (
            Call(function, (Col() as column, Lit(value, type_)), _),
            Call(as_there, (its_column, Lit(_, its_type)), _),
        ) if function == as_there and column == its_column and type_ == its_type:
            return range_of(function, value, type_)
        case _:
            return None


def _is_ranged(part: Expr) -> bool:
    match part:
        case Call(function, (Col(_, of, _), Lit(value, type_)), _):
            return function in RANGES and value is not None and of == type_
        case _:
            return False


def _frame(plan: Node, pool: Pool) -> _Frame | None:
    """None where it is not sure that plans like this one differ in ranges alone."""
    block = _block(plan)
    if block is None or not any(map(_is_ranged, block.parts)):
        return None
    others = [p for p in block.parts if not _is_ranged(p)]
    form = normalise(block.with_parts(others))
    if not isinstance(form, NormalQuery) or _joins_itself(form.core):
        return None
    ranged: list[Expr | None] = []
    for part in block.parts:
        column = _column(block, part, others, form) if _is_ranged(part) else None
        if _is_ranged(part) and column is None:
            return None
        ranged.append(column)
    whole = normalise(plan)
    assert isinstance(whole, NormalQuery)
    order = tuple([pool.one(e) for e, _ in whole.core.ranges])
    frame = _Frame(block, tuple(ranged), pool.normal(form), order)
    assert frame.normal(plan) == whole
    return frame


def _column(block: _Block, part: Expr, others: list[Expr], form: NormalQuery) -> Expr | None:
    """The column that a part becomes a range of, which shows where it is added to the others."""
    found = normalise(block.with_parts([*others, part]))
    assert isinstance(found, NormalQuery)
    before, after = dict(form.core.ranges), dict(found.core.ranges)
    changed = [e for e in after if after[e] != before.get(e)]
    values = _range(part, part)
    assert values is not None
    if len(changed) != 1 or not isinstance(changed[0], Col):
        return None
    (column,) = changed
    is_met = after[column] == before.get(column, EVERYTHING).meet(values)
    rest = replace(found, core=replace(found.core, ranges=form.core.ranges))
    return column if is_met and rest == form else None


def _joins_itself(core: Core) -> bool:
    names = [s.name for s in core.streams]
    return len(set(names)) < len(names)
