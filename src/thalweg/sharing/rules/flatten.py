"""Nested selects, projections and joins become one block, whatever their nesting.

Sub-queries in FROM and views are plans inside plans and disappear here. Above the first DISTINCT
or GROUP BY, selections and projections are steps of their own.
"""

from __future__ import annotations

from thalweg.plan.expr import conjuncts, shift
from thalweg.plan.nodes import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    LeftJoin,
    Mark,
    Node,
    Project,
    Scan,
    SetOp,
    ToStream,
    Window,
)
from thalweg.plan.windows import RowsWindow
from thalweg.sharing.block import Block, Leaf, Unshareable, all_columns, over
from thalweg.sharing.core import Computed, Grouped, Kept, WithoutRepeats


def flatten(node: Node) -> Block:
    match node:
        case Project(source, exprs, _):
            block = flatten(source)
            if block.above:
                return _with_step(block, Computed(exprs))
            outputs = tuple([over(block.outputs, e) for e in exprs])
            return Block(block.leaves, block.conditions, outputs)
        case Filter(source, predicate):
            block = flatten(source)
            if block.above:
                return _with_step(block, Kept(predicate))
            added = tuple([over(block.outputs, c) for c in conjuncts(predicate)])
            return Block(block.leaves, block.conditions + added, block.outputs)
        case Window():
            return Block((_leaf(node),))
        case Join(inputs, condition):
            block = _side_by_side(inputs)
            added = tuple([over(block.outputs, c) for c in conjuncts(condition)])
            return Block(block.leaves, block.conditions + added, block.outputs)
        case Aggregate(source, keys, aggregates, _):
            return _with_step(flatten(source), Grouped(keys, aggregates))
        case Distinct(source):
            return _with_step(flatten(source), WithoutRepeats())
        case Scan(stream):
            raise Unshareable(f"{stream.name} is a relation, whose rows leave when it says so")
        case LeftJoin():
            raise Unshareable("LEFT JOIN has rows for what did not match")
        case Mark():
            raise Unshareable("EXISTS and IN (sub-query) look at other rows")
        case SetOp(kind, _, _, _):
            raise Unshareable(f"{kind.value} combines the results of two queries")
        case ToStream(kind, _):
            raise Unshareable(f"it reads from a sub-query or view that is a stream ({kind.value})")


def _leaf(node: Window) -> Leaf:
    source, spec = node.input, node.spec
    if not isinstance(source, Scan):
        raise Unshareable("a window stands on a sub-query or view, not on a base stream")
    if isinstance(spec, RowsWindow):
        reason = "whose rows leave when others come, so nothing may be filtered before it"
        raise Unshareable(f"{source.stream.name} has a window of rows, {reason}")
    return Leaf(source.stream, spec)


def _side_by_side(inputs: tuple[Node, ...]) -> Block:
    blocks = [flatten(node) for node in inputs]
    if any(b.above for b in blocks):
        raise Unshareable("it joins the result of a GROUP BY or DISTINCT")
    leaves = tuple([leaf for b in blocks for leaf in b.leaves])
    if all(b.outputs is None and not b.conditions for b in blocks):
        return Block(leaves)
    conditions, outputs, begin = [], [], 0
    for block in blocks:
        conditions += [shift(c, begin) for c in block.conditions]
        outputs += [shift(e, begin) for e in block.outputs or all_columns(block.leaves)]
        begin += block.width
    return Block(leaves, tuple(conditions), tuple(outputs))


def _with_step(block: Block, step: Computed | Kept | Grouped | WithoutRepeats) -> Block:
    return Block(block.leaves, block.conditions, block.outputs, (*block.above, step))
