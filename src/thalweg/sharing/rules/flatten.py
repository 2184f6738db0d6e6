"""Nested selects, projections and joins become one block, whatever their nesting.

Sub-queries in FROM and views are plans inside plans and disappear here. Above the first DISTINCT
or GROUP BY, selections and projections are steps of their own.
"""

from __future__ import annotations

from thalweg.plan import blocks
from thalweg.plan.blocks import block_of
from thalweg.plan.nodes import (
    Aggregate,
    Distinct,
    Filter,
    LeftJoin,
    Mark,
    Node,
    Project,
    Scan,
    SetOp,
    Tolerant,
    TopK,
    ToStream,
    Window,
)
from thalweg.plan.windows import HopWindow, RowsWindow, SessionWindow
from thalweg.sharing.block import Block, Leaf, Unshareable
from thalweg.sharing.core import Computed, Grouped, Kept, Step, WithoutRepeats


def flatten(node: Node) -> Block:
    below, above = _divided(node)
    found = block_of(below, _leaf)
    steps = tuple([_step(n) for n in reversed(above)])
    return Block(found.leaves, found.types, found.conditions, found.outputs, steps)


def _divided(node: Node) -> tuple[Node, list[Node]]:
    """What stands below the lowest DISTINCT or GROUP BY, and the rest, outermost first."""
    chain: list[Node] = []
    below, above = node, 0
    while isinstance(node, Project | Filter | Aggregate | Distinct):
        chain.append(node)
        if isinstance(node, Aggregate | Distinct):
            below, above = node.input, len(chain)
        node = node.input
    return below, chain[:above]


def _step(node: Node) -> Step:
    match node:
        case Project(_, exprs, _):
            return Computed(exprs)
        case Filter(_, predicate):
            return Kept(predicate)
        case Aggregate(_, keys, aggregates, _):
            return Grouped(keys, aggregates)
        case _:
            return WithoutRepeats()


def _leaf(node: Node) -> blocks.Block[Leaf]:
    match node:
        case Window(Scan(stream), spec):
            if isinstance(spec, RowsWindow):
                reason = "whose rows leave when others come, so nothing may be filtered before it"
                raise Unshareable(f"{stream.name} has a window of rows, {reason}")
            if isinstance(spec, SessionWindow):
                reason = "whose rows are there only when their session has ended"
                raise Unshareable(f"{stream.name} has a session window, {reason}")
            if isinstance(spec, HopWindow):
                reason = "which lets tuples in after their own instant"
                raise Unshareable(f"{stream.name} has a tumbling or hopping window, {reason}")
            types = tuple([f.type for f in stream.fields])
            return blocks.Block((Leaf(stream, spec),), (types,))
        case Window(Tolerant() as below, _):
            reason = "whose rows depend on which ones passed before"
            raise Unshareable(f"{below.stream.name} is read with a TOLERANCE, {reason}")
        case Window():
            raise Unshareable("a window stands on a sub-query or view, not on a base stream")
        case Aggregate() | Distinct():
            raise Unshareable("it joins the result of a GROUP BY or DISTINCT")
        case Scan(stream):
            raise Unshareable(f"{stream.name} is a relation, whose rows leave when it says so")
        case LeftJoin():
            raise Unshareable("LEFT JOIN has rows for what did not match")
        case TopK():
            raise Unshareable("ORDER BY … LIMIT compares each row with all others")
        case SetOp(kind, _, _, _):
            raise Unshareable(f"{kind.value} combines the results of two queries")
        case ToStream(kind, _):
            raise Unshareable(f"it reads from a sub-query or view that is a stream ({kind.value})")
        case Filter() | Mark():
            raise Unshareable("EXISTS and IN (sub-query) look at other rows")
        case _:
            raise AssertionError(f"{type(node).__name__} is part of a block")
