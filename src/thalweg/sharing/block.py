"""A query on its way to the normal form: one select-project-join block and the steps above it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from thalweg.plan import blocks
from thalweg.plan.aggregates import AggCall
from thalweg.plan.blocks import over
from thalweg.plan.catalog import StreamDef
from thalweg.plan.expr import Expr
from thalweg.plan.windows import TimeWindow
from thalweg.sharing.core import Step


@dataclass(frozen=True, slots=True)
class Leaf:
    stream: StreamDef
    window: TimeWindow


@dataclass(frozen=True, slots=True)
class Block(blocks.Block[Leaf]):
    above: tuple[Step, ...] = ()


class Unshareable(Exception):
    """A plan outside of what has a normal form; the message is for the query's author."""


def call_over(exprs: Sequence[Expr] | None, call: AggCall) -> AggCall:
    if call.arg is None:
        return call
    return AggCall(call.function, over(exprs, call.arg), call.distinct)
