"""Select-join blocks of a plan: leaves, filters of one leaf, and conditions between leaves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from thalweg.plan import blocks
from thalweg.plan.blocks import leaves_of
from thalweg.plan.catalog import Field
from thalweg.plan.expr import Call, Expr, conjuncts, remap
from thalweg.plan.nodes import Filter, Join, Node, Scan, Schema, Window, inputs_of
from thalweg.plan.text import expr_text, node_text
from thalweg.plan.windows import RowsWindow, SessionWindow, WindowSpec


@dataclass(frozen=True, slots=True)
class Leaf:
    """A window over a stream, and the filters above it; its columns are counted from 0."""

    source: Node  # what the window is on: a base stream, or a plan of its own
    window: WindowSpec | None
    schema: Schema
    filters: tuple[Expr, ...]

    @property
    def text(self) -> str:
        window = f" {self.window}" if self.window is not None else ""
        return _selected(f"{plan_name(self.source)}{window}", self.filters, self.schema)

    @property
    def name(self) -> str:
        """Of its columns, among others."""
        return self.source.stream.name if isinstance(self.source, Scan) else "it"

    @property
    def filtered_text(self) -> str:
        """The filtered stream, which windows over time share; what Rows and sessions are made of
        comes before it, and so do bounds."""
        if isinstance(self.window, RowsWindow | SessionWindow) or _has_bounds(self.window):
            return self.text
        return _selected(plan_name(self.source), self.filters, self.schema)


@dataclass(frozen=True, slots=True)
class Block:
    leaves: tuple[Leaf, ...]  # in order of their text
    conditions: tuple[Expr, ...]  # over the leaves' columns in a row
    starts: tuple[int, ...]  # the first column of each leaf
    order: tuple[int, ...]  # the leaves' places in the FROM list

    def within(self, part: tuple[int, ...]) -> list[Expr]:
        return [c for c in self.conditions if leaves_of(c, self.starts) <= set(part)]

    def text(self, part: tuple[int, ...]) -> str:
        """The same for equal sub-joins, wherever they come from."""
        schema: list[Field] = []
        names = _told_apart([self.leaves[i].name for i in part])
        for i, leaf in enumerate(self.leaves):
            name = names[part.index(i)] if i in part else "elsewhere"
            schema += [Field(f"{name}.{f.name}", f.type) for f in leaf.schema]
        leaves = " ⋈ ".join(self.leaves[i].text for i in part)
        return _selected(leaves, self.within(part), tuple(schema))

    @property
    def connected(self) -> bool:
        reached = {0}
        for _ in self.leaves:
            for condition in self.conditions:
                used = leaves_of(condition, self.starts)
                if used & reached:
                    reached |= used
        return len(reached) == len(self.leaves)


def block_of(node: Node) -> tuple[Block | None, list[Node]]:
    """The block at the foot of a chain of one-input nodes, and that chain, outermost first.

    No block, if the chain ends in something else: a set operator, an outer join.
    """
    above: list[Node] = []
    while True:
        block = _block(node)
        if block is not None:
            return block, above
        inputs = inputs_of(node)
        if len(inputs) != 1:
            return None, above
        above.append(node)
        node = inputs[0]


def finish_text(block: Block | None, above: Sequence[Node]) -> str:
    """What is done above a block; its columns are counted in the order of the FROM list."""
    parts = [node_text(n) for n in above]
    if block is not None and block.order != tuple(sorted(block.order)):
        parts.append("columns of " + ", ".join(str(i + 1) for i in block.order))
    return " · ".join(parts)


def _block(node: Node) -> Block | None:
    conditions: list[Expr] = []
    while isinstance(node, Filter):
        conditions += conjuncts(node.predicate)
        node = node.input
    inputs: tuple[Node, ...] = (node,)
    if isinstance(node, Join):
        inputs, conditions = node.inputs, conditions + list(conjuncts(node.condition))
    if not all(isinstance(i, Window) or (isinstance(i, Scan) and not i.is_stream) for i in inputs):
        return None
    return _arranged(inputs, conditions)


def _arranged(inputs: tuple[Node, ...], conditions: Iterable[Expr]) -> Block:
    """Filters go to their leaf; leaves are put in order of their text, and columns follow."""
    types = tuple(tuple(f.type for f in n.schema) for n in inputs)
    plain = blocks.Block(inputs, types, tuple(conditions))
    filters, between = plain.conditions_by_leaf()
    leaves = [_leaf(n, f) for n, f in zip(inputs, filters, strict=True)]
    order = sorted(range(len(leaves)), key=lambda i: (leaves[i].text, i))
    arranged = tuple(leaves[i] for i in order)
    starts = blocks.Block(arranged, tuple(types[i] for i in order)).starts
    moved = {
        plain.starts[old] + column: starts[new] + column
        for new, old in enumerate(order)
        for column in range(len(types[old]))
    }
    return Block(
        arranged, tuple(remap(c, moved.__getitem__) for c in between), starts, tuple(order)
    )


def _told_apart(names: Sequence[str]) -> list[str]:
    """What is read twice is `S.1` and `S.2`."""
    return [
        f"{name}.{names[: place + 1].count(name)}" if names.count(name) > 1 else name
        for place, name in enumerate(names)
    ]


def _leaf(node: Node, filters: list[Expr]) -> Leaf:
    if isinstance(node, Window):
        return Leaf(node.input, node.spec, node.schema, tuple(filters))
    return Leaf(node, None, node.schema, tuple(filters))


def _has_bounds(window: WindowSpec | None) -> bool:
    return window is not None and window.bounds is not None


def _selected(text: str, conditions: Sequence[Expr], schema: Schema) -> str:
    if not conditions:
        return text
    return f"({text} : {' AND '.join(sorted(_condition(c, schema) for c in conditions))})"


def _condition(condition: Expr, schema: Schema) -> str:
    """An equality reads the same from both sides."""
    if isinstance(condition, Call) and condition.function == "=":
        return " = ".join(sorted(expr_text(a, schema) for a in condition.args))
    return expr_text(condition, schema)


def plan_name(node: Node) -> str:
    if isinstance(node, Scan):
        return node.stream.name
    below = ", ".join(plan_name(n) for n in inputs_of(node))
    return f"{node_text(node)}({below})"
