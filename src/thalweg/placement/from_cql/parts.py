"""From a Deployment back to plans: what each host computes of a query.

Operators of a problem are named by texts, which tell costs apart and not what is computed. So each
query's parts are made of its own plan, walked together with its tree of operators and hosts
(`placement/explain.py`): a stream that comes from another host is a part of its own, and the plan
reads it in the operator's place (`plan/cutting.py`). Who relays a stream is left out.

A filter of a base stream at the stream's home is no part: streams leave their home filtered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import combinations

from thalweg.placement import explain
from thalweg.placement.explain import Kind
from thalweg.placement.from_cql.blocks import Block, Leaf, block_of, finish_text
from thalweg.placement.from_cql.whole import has_clock, lasts, must_be_whole
from thalweg.placement.problem import Problem
from thalweg.plan.blocks import leaves_of
from thalweg.plan.cutting import in_its_place, part_schema
from thalweg.plan.expr import Col, conjunction, remap
from thalweg.plan.nodes import Filter, Join, Node, Project, Scan, Window, inputs_of, with_inputs

Leaves = tuple[int, ...]  # of a block, in order


@dataclass(frozen=True, slots=True)
class Part:
    """What one host computes: a plan over base streams, and over other hosts' parts by name.
    `from_beginning`: it is of no use once its streams have begun."""

    host: int
    plan: Node
    inputs: tuple[tuple[str, Part], ...]
    from_beginning: bool = False


def part_of(problem: Problem, plan: Node, tree: explain.Node, *, late: bool) -> Part:
    """A query's plan at the host that serves it; `late`: some of its streams have begun."""
    builder = _Builder(problem, tree.host, late)
    made = builder.read(plan, tree, inside=False)
    return Part(tree.host, made, tuple(builder.inputs))


@dataclass(slots=True)
class _Builder:
    """One host's part."""

    problem: Problem
    host: int
    late: bool
    inputs: list[tuple[str, Part]] = field(default_factory=list)

    def read(self, plan: Node, tree: explain.Node, *, inside: bool) -> Node:
        """A plan's result as this host comes by it."""
        if isinstance(plan, Scan):
            return plan
        made = _maker(tree)
        if made.host == self.host or not has_clock(plan):
            return self._computed(plan, made, inside)
        return self._cut(made.host, lambda b: b._computed(plan, made, inside), inside)

    def _cut(self, host: int, make: Callable[[_Builder], Node], inside: bool) -> Node:
        there = _Builder(self.problem, host, self.late)
        plan = make(there)
        name = f"part/{len(self.inputs)}"
        self.inputs.append((name, Part(host, plan, tuple(there.inputs), inside)))
        return in_its_place(plan, part_schema(plan, name))

    def _computed(self, plan: Node, tree: explain.Node, inside: bool) -> Node:
        """A plan whose last operator runs here."""
        if must_be_whole(plan, late=self.late):
            return plan
        block, above = block_of(plan)
        if block is None:
            below = zip(inputs_of(plan), tree.inputs, strict=True)
            inside = inside or lasts(plan)
            return with_inputs(
                plan, tuple([self.read(n, arc.node, inside=inside) for n, arc in below])
            )
        inside = inside or any(map(lasts, above))
        foot = plan
        for _ in above:
            (foot,) = inputs_of(foot)
        before = len(self.inputs)
        if len(block.leaves) == 1:
            made = self._leaf(block.leaves[0], tree.inputs[0].node, inside)
        else:
            joined = tree.inputs[0].node if finish_text(block, above) else tree
            everything = tuple(range(len(block.leaves)))
            made = self._in_from_order(block, self._join(block, everything, joined, inside))
        if len(self.inputs) == before:
            return plan
        for node in reversed(above):
            made = with_inputs(node, (made,))
        return made

    # --- leaves

    def _leaf(self, leaf: Leaf, tree: explain.Node, inside: bool) -> Node:
        made = _maker(tree)
        if not leaf.filters:
            return self._windowed(leaf, tree)
        is_base = isinstance(leaf.source, Scan)
        homes = self.problem.streams.home
        at_home = is_base and made.host == int(homes[made.inputs[0].node.stream])
        if made.host == self.host or at_home or not has_clock(leaf.source):
            return self._windowed(leaf, made.inputs[0].node)
        return self._cut(
            made.host, lambda b: b._windowed(leaf, made.inputs[0].node), inside or not is_base
        )

    def _windowed(self, leaf: Leaf, tree: explain.Node) -> Node:
        """A leaf with its filters; a stream inside is known from its beginning, or not at all."""
        node = self.read(leaf.source, tree, inside=True)
        if leaf.window is not None:
            node = Window(node, leaf.window)
        return Filter(node, conjunction(leaf.filters)) if leaf.filters else node

    # --- joins

    def _join(self, block: Block, part: Leaves, tree: explain.Node, inside: bool) -> Node:
        """Columns in order of the block's leaves."""
        units = list(self._units(block, part, tree, inside))
        if len(units) == 1:
            return units[0][1]
        order = [leaf for leaves, _ in units for leaf in leaves]
        moved: dict[int, int] = {}
        for leaf in order:
            for column in range(len(block.leaves[leaf].schema)):
                moved[block.starts[leaf] + column] = len(moved)
        done = [set(leaves) for leaves, _ in units if len(leaves) > 1]
        left = [
            remap(c, moved.__getitem__)
            for c in block.within(part)
            if not any(leaves_of(c, block.starts) <= leaves for leaves in done)
        ]
        joined = Join(tuple([plan for _, plan in units]), conjunction(tuple(left)))
        return _arranged(block, joined, order, sorted(part))

    def _units(
        self, block: Block, part: Leaves, tree: explain.Node, inside: bool
    ) -> Iterator[tuple[Leaves, Node]]:
        """What is joined here: leaves, and joins that others compute."""
        if len(part) == 1:
            yield part, self._leaf(block.leaves[part[0]], tree, inside)
            return
        made = _maker(tree)
        if made.host != self.host:
            yield (
                part,
                self._cut(made.host, lambda b: b._join(block, part, made, inside), inside),
            )
            return
        for side, arc in zip(self._sides(block, part, made), made.inputs, strict=True):
            yield from self._units(block, side, arc.node, inside)

    def _sides(self, block: Block, part: Leaves, made: explain.Node) -> tuple[Leaves, Leaves]:
        """Which leaves each input of a join stands for."""
        names = [self.problem.streams.names[arc.node.stream] for arc in made.inputs]

        def fits(side: Leaves, name: str) -> bool:
            if len(side) > 1:
                return block.text(side) == name
            leaf = block.leaves[side[0]]
            if leaf.filters:
                return leaf.filtered_text == name
            return not isinstance(leaf.source, Scan) or leaf.source.stream.name == name

        first, rest = part[0], part[1:]
        for size in range(len(rest)):
            for chosen in combinations(rest, size):
                left, right = (first, *chosen), tuple([i for i in rest if i not in chosen])
                if fits(left, names[0]) and fits(right, names[1]):
                    return left, right
        raise AssertionError("an operator of another plan")

    def _in_from_order(self, block: Block, joined: Node) -> Node:
        places = [block.order.index(place) for place in range(len(block.leaves))]
        return _arranged(block, joined, list(range(len(places))), places)


def _arranged(block: Block, node: Node, have: list[int], wanted: list[int]) -> Node:
    """The same rows with the leaves' columns in another order."""
    if have == wanted:
        return node
    first: dict[int, int] = {}
    width = 0
    for leaf in have:
        first[leaf] = width
        width += len(block.leaves[leaf].schema)
    fields = [(first[i] + k, f) for i in wanted for k, f in enumerate(block.leaves[i].schema)]
    columns = tuple(Col(place, f.type, f.name) for place, f in fields)
    return Project(node, columns, tuple(f.name for _, f in fields))


def _maker(node: explain.Node) -> explain.Node:
    """Who makes a stream, however it comes."""
    while node.kind in (Kind.RELAY, Kind.OVERLAY) and node.inputs:
        node = node.inputs[0].node
    return node
