"""Select-project-join blocks: nested selections, projections and joins as one.

A block has leaves side by side, and conditions and outputs over their columns, counted from the
first leaf's on. What a leaf is depends on the caller: a stream under a window, an operator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Generic, TypeVar

from thalweg.plan.expr import Col, Expr, columns_of, conjuncts, shift, substitute
from thalweg.plan.nodes import Filter, Join, Mark, Node, Project
from thalweg.plan.types import SqlType

L = TypeVar("L")


@dataclass(frozen=True, slots=True)
class Block(Generic[L]):
    """`outputs` is None for all columns as they stand: common, and saves rewriting them."""

    leaves: tuple[L, ...]
    types: tuple[tuple[SqlType, ...], ...]  # of each leaf's columns
    conditions: tuple[Expr, ...] = ()
    outputs: tuple[Expr, ...] | None = None

    @property
    def width(self) -> int:
        return sum(map(len, self.types))

    @property
    def starts(self) -> tuple[int, ...]:
        """The first column of each leaf."""
        return tuple(accumulate(map(len, self.types[:-1]), initial=0))

    def all_columns(self) -> tuple[Expr, ...]:
        return tuple([Col(i, t) for i, t in enumerate(t for of in self.types for t in of)])

    def exprs(self) -> tuple[Expr, ...]:
        """The outputs, written out."""
        return self.outputs if self.outputs is not None else self.all_columns()

    def filtered(self, predicate: Expr) -> Block[L]:
        added = tuple([over(self.outputs, c) for c in conjuncts(predicate)])
        return replace(self, conditions=self.conditions + added)

    def projected(self, exprs: Sequence[Expr]) -> Block[L]:
        return replace(self, outputs=tuple([over(self.outputs, e) for e in exprs]))

    def conditions_by_leaf(self) -> tuple[list[list[Expr]], list[Expr]]:
        """Conditions of one leaf, over its own columns; and those between leaves.

        One over no column at all (a constant) is the first leaf's.
        """
        starts = self.starts
        of_leaf: list[list[Expr]] = [[] for _ in self.leaves]
        between: list[Expr] = []
        for condition in dict.fromkeys(self.conditions):
            used = leaves_of(condition, starts)
            if len(used) > 1:
                between.append(condition)
            else:
                leaf = next(iter(used), 0)
                of_leaf[leaf].append(shift(condition, -starts[leaf]))
        return of_leaf, between


def block_of(node: Node, leaf: Callable[[Node], Block[L]]) -> Block[L]:
    """The block at the top of a plan; `leaf` makes one of each node where it ends."""
    match node:
        case Filter(source, predicate) if not isinstance(source, Mark):
            return block_of(source, leaf).filtered(predicate)
        case Project(source, exprs, _):
            return block_of(source, leaf).projected(exprs)
        case Join(inputs, condition):
            return side_by_side([block_of(i, leaf) for i in inputs]).filtered(condition)
        case _:
            return leaf(node)


def side_by_side(blocks: Sequence[Block[L]]) -> Block[L]:
    leaves = tuple([leaf for b in blocks for leaf in b.leaves])
    types = tuple([t for b in blocks for t in b.types])
    if all(b.outputs is None and not b.conditions for b in blocks):
        return Block(leaves, types)
    conditions, outputs, begin = [], [], 0
    for block in blocks:
        conditions += [shift(c, begin) for c in block.conditions]
        outputs += [shift(e, begin) for e in block.exprs()]
        begin += block.width
    return Block(leaves, types, tuple(conditions), tuple(outputs))


def leaves_of(expr: Expr, starts: Sequence[int]) -> frozenset[int]:
    """The leaves whose columns an expression looks at."""
    return frozenset(max(i for i, s in enumerate(starts) if s <= c) for c in columns_of(expr))


def over(exprs: Sequence[Expr] | None, expr: Expr) -> Expr:
    """An expression over the columns that `exprs` compute, written over what they are made of."""
    if exprs is None:
        return expr
    return exprs[expr.index] if isinstance(expr, Col) else substitute(expr, tuple(exprs))
