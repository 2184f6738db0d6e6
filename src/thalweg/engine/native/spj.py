"""Brings a plan into the one form that this engine runs: select, project, join over time windows.

Filters and projections are pulled above all joins, so that what remains is a list of windowed base
streams, a condition and output expressions over the columns of all inputs in a row.
"""

from __future__ import annotations

from dataclasses import dataclass

from thalweg.engine.native.unsupported import Unsupported
from thalweg.plan.blocks import Block, block_of
from thalweg.plan.catalog import StreamDef
from thalweg.plan.expr import Expr, conjuncts
from thalweg.plan.nodes import (
    Aggregate,
    Distinct,
    Filter,
    LeftJoin,
    Mark,
    Node,
    Scan,
    SetOp,
    StreamKind,
    TopK,
    ToStream,
    Window,
    resolution_us,
)
from thalweg.plan.windows import HopWindow, RowsWindow, SessionWindow


@dataclass(frozen=True, slots=True)
class Input:
    """A base stream under a window of `length` instants; None never ends."""

    stream: StreamDef
    length: int | None


@dataclass(frozen=True, slots=True)
class SelectProjectJoin:
    inputs: tuple[Input, ...]
    condition: tuple[Expr, ...]  # conjuncts
    outputs: tuple[Expr, ...]
    names: tuple[str, ...]
    is_stream: bool  # ISTREAM of the relation, else the relation itself

    def input_of(self, column: int) -> int:
        """Which input a column belongs to."""
        for number, first in enumerate(self.offsets):
            if column < first + len(self.inputs[number].stream.fields):
                return number
        raise IndexError(column)

    @property
    def offsets(self) -> tuple[int, ...]:
        """Where each input's columns begin."""
        widths = [len(i.stream.fields) for i in self.inputs]
        return tuple(sum(widths[:number]) for number in range(len(widths)))


def flatten(plan: Node) -> SelectProjectJoin:
    """Raises Unsupported, naming the operator, for any plan that has another form."""
    resolution_us(plan)
    relation, is_stream = plan, False
    if isinstance(plan, ToStream):
        if plan.kind is not StreamKind.ISTREAM:
            raise Unsupported(plan.kind.value, "Spark's append mode has no operator for it")
        relation, is_stream = plan.input, True
    block = block_of(relation, _leaf)
    # A condition may be a projected column that is itself a conjunction.
    conditions = tuple(part for c in block.conditions for part in conjuncts(c))
    names = tuple(f.name for f in plan.schema)
    return SelectProjectJoin(block.leaves, conditions, block.exprs(), names, is_stream)


def _leaf(node: Node) -> Block[Input]:
    if not isinstance(node, Window):
        raise _refusal(node)
    return Block((_windowed(node),), (tuple(f.type for f in node.schema),))


def _windowed(node: Window) -> Input:
    if isinstance(node.spec, RowsWindow):
        raise Unsupported("a Rows window", "Spark has windows by time only")
    if isinstance(node.spec, SessionWindow):
        raise Unsupported("a Session window", "Spark's session windows aggregate, they do not join")
    if isinstance(node.spec, HopWindow):
        raise Unsupported(
            "a Tumble or Hop window", "Spark's time windows aggregate, they do not join"
        )
    if node.spec.slide != 1:
        raise Unsupported("Slide", "Spark's sliding windows aggregate, they do not join")
    if not isinstance(node.input, Scan):
        raise Unsupported("a window over a derived stream", "its watermark can't be set anew")
    return Input(node.input.stream, node.spec.length)


def _refusal(node: Node) -> Unsupported:
    match node:
        case Filter():  # a block ends at one over a Mark
            return _refusal(node.input)
        case Scan():
            return Unsupported(
                f"relation {node.stream.name}", "Spark's stream joins can't take a row back"
            )
        case LeftJoin():
            return Unsupported(
                "LEFT JOIN", "Spark gives the unmatched row once, at its end, and never retracts it"
            )
        case Aggregate():
            return Unsupported(
                "an aggregate", "Spark can't emit its value at every instant at which it changes"
            )
        case Distinct():
            return Unsupported("DISTINCT", "Spark keeps the first row and never lets it leave")
        case SetOp():
            return Unsupported(node.kind.value, "Spark's set operators do not follow windows")
        case TopK():
            return Unsupported("ORDER BY … LIMIT", "Spark orders streams in complete mode only")
        case Mark():
            return Unsupported("EXISTS or IN with a sub-query", "Spark never takes a match back")
        case ToStream():
            return Unsupported(
                f"{node.kind.value} inside a query", "its watermark can't be set anew"
            )
        case _:
            return Unsupported(type(node).__name__, "there is no operator for it")
