"""A query on its way to the normal form: one select-project-join block and the steps above it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from thalweg.plan.aggregates import AggCall
from thalweg.plan.catalog import StreamDef
from thalweg.plan.expr import Col, Expr, substitute
from thalweg.plan.windows import TimeWindow
from thalweg.sharing.core import Step


@dataclass(frozen=True, slots=True)
class Leaf:
    stream: StreamDef
    window: TimeWindow


@dataclass(frozen=True, slots=True)
class Block:
    """Leaves side by side, conditions and outputs over their columns.

    `outputs` is None for all columns as they stand, which is common and saves their rewriting.
    """

    leaves: tuple[Leaf, ...]
    conditions: tuple[Expr, ...] = ()
    outputs: tuple[Expr, ...] | None = None
    above: tuple[Step, ...] = ()

    @property
    def width(self) -> int:
        return sum(len(leaf.stream.fields) for leaf in self.leaves)


class Unshareable(Exception):
    """A plan outside of what has a normal form; the message is for the query's author."""


def over(exprs: Sequence[Expr] | None, expr: Expr) -> Expr:
    """An expression over the columns that `exprs` compute, written over what they are made of."""
    if exprs is None:
        return expr
    return exprs[expr.index] if isinstance(expr, Col) else substitute(expr, tuple(exprs))


def call_over(exprs: Sequence[Expr] | None, call: AggCall) -> AggCall:
    if call.arg is None:
        return call
    return AggCall(call.function, over(exprs, call.arg), call.distinct)


def all_columns(leaves: Sequence[Leaf]) -> tuple[Expr, ...]:
    fields = (f for leaf in leaves for f in leaf.stream.fields)
    return tuple(Col(i, f.type) for i, f in enumerate(fields))
