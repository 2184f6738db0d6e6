"""Problems from CQL queries and measured rates.

Each query's plan becomes streams and operators: filters over one stream, all join orders of its
joins, and one operator for what is above them. Streams are equal when their text is: the leaves
with their windows and filters, and the conditions between them, in an order of their own, so that
neither the FROM list nor the join order tells two equal sub-joins apart.

Rates that were not measured are estimated linearly (SQPR, II-B): a join gives a share of the sum of
its leaves' rates, and that share is a product over its conditions, whatever the join order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from thalweg.placement.arrays import NONE
from thalweg.placement.building import ProblemBuilder, add_join_orders
from thalweg.placement.from_cql.blocks import Block, block_of, finish_text, plan_name
from thalweg.placement.from_cql.whole import MOST_LEAVES
from thalweg.placement.problem import Hosts, Problem
from thalweg.plan.blocks import leaves_of
from thalweg.plan.catalog import QueryDef
from thalweg.plan.expr import Call, Expr, columns_of
from thalweg.plan.nodes import Node, Scan, base_streams, inputs_of

OF_EQUALITY = 1 / 10
OF_OTHERS = 1 / 3


@dataclass(frozen=True, slots=True)
class Measured:
    """What is known: of base streams the home and the rate, of the rest whatever was measured."""

    homes: Mapping[str, int]  # base stream -> number of its host
    rate_bps: Mapping[str, float]  # base streams, and others by their name in the problem
    cpu: Mapping[str, float] = field(default_factory=dict)  # operators by their name
    cpu_per_bps: float = 1e-6  # of an operator's input, where nothing was measured


Whole = Callable[[Node], bool]


def problem_of_queries(
    hosts: Hosts,
    queries: Sequence[QueryDef],
    measured: Measured,
    proxies: Sequence[int] = (),
    whole: Sequence[Whole] = (),
    bounds_ms: Sequence[float] = (),
) -> Problem:
    """`whole` says, for each query, of a plan that it is one operator, with all that is below;
    `bounds_ms`, how late its results may be."""
    builder = ProblemBuilder(hosts)
    for number, query in enumerate(queries):
        entry = _Entry(builder, measured, whole[number] if whole else lambda _: False)
        wanted = entry.stream_of(query.plan)
        proxy = proxies[number] if proxies else NONE
        bound_ms = bounds_ms[number] if bounds_ms else inf
        builder.query(query.name, wanted, proxy=proxy, latency_bound_ms=bound_ms)
    return builder.build()


@dataclass(slots=True)
class _Entry:
    builder: ProblemBuilder
    measured: Measured
    whole: Whole

    def stream_of(self, node: Node) -> int:
        if isinstance(node, Scan):
            return self._base(node)
        if self.whole(node):
            return self._made(plan_name(node), [self._base(Scan(s)) for s in base_streams(node)])
        block, above = block_of(node)
        if block is None:
            inputs = [self.stream_of(child) for child in inputs_of(node)]
            names = ", ".join(self.builder.stream_name(s) for s in inputs)
            return self._made(f"{finish_text(None, [node])}({names})", inputs)
        below = self._block(block)
        if len(block.leaves) == 1:  # the window is nowhere else
            return self._made(f"{finish_text(block, above)}({block.leaves[0].text})", [below])
        finish = finish_text(block, above)
        return (
            self._made(f"{finish}({self.builder.stream_name(below)})", [below]) if finish else below
        )

    def _base(self, scan: Scan) -> int:
        name = scan.stream.name
        if name not in self.measured.homes or name not in self.measured.rate_bps:
            raise ValueError(f"stream {name}: its home and its rate must be known")
        rate = self.measured.rate_bps[name]
        return self.builder.stream(name, name, rate, self.measured.homes[name])

    def _block(self, block: Block) -> int:
        if len(block.leaves) > MOST_LEAVES:
            raise ValueError(
                f"a join of {len(block.leaves)} streams has too many join orders to list "
                f"(at most {MOST_LEAVES} streams): split it by a view"
            )
        leaves = []
        for leaf in block.leaves:
            below = self.stream_of(leaf.source)
            if leaf.filters:
                below = self._made(leaf.filtered_text, [below], share=_share(leaf.filters))
            leaves.append(below)
        if len(leaves) == 1:
            return leaves[0]
        return add_join_orders(self.builder, leaves, _Joins(block, leaves, self))

    def _made(self, text: str, inputs: Sequence[int], share: float = 1.0) -> int:
        """A stream that one operator makes, entered once whoever asks for it."""
        read = sum(self.builder.rate_bps(s) for s in inputs)
        stream = self.builder.stream(text, text, self.rate_bps(text, share * read))
        self.builder.operator(text, inputs, stream, self.cpu(text, read))
        return stream

    def rate_bps(self, name: str, estimate: float) -> float:
        return self.measured.rate_bps.get(name, estimate)

    def cpu(self, name: str, input_bps: float) -> float:
        return self.measured.cpu.get(name, self.measured.cpu_per_bps * input_bps)


@dataclass(frozen=True, slots=True)
class _Joins:
    """One block's sub-joins, for `add_join_orders`."""

    block: Block
    leaves: Sequence[int]
    entry: _Entry

    def key(self, part: tuple[int, ...]) -> str:
        return self.block.text(part)

    def name(self, part: tuple[int, ...]) -> str:
        return self.block.text(part)

    def rate_bps(self, part: tuple[int, ...]) -> float:
        read = sum(self.entry.builder.rate_bps(self.leaves[i]) for i in part)
        estimate = _share(self.block.within(part)) * read
        return self.entry.rate_bps(self.name(part), estimate)

    def operator(self, output: str, left: str, right: str) -> str:
        return f"{output} from {left} and {right}"

    def cpu(self, operator: str, input_bps: float) -> float:
        return self.entry.cpu(operator, input_bps)

    def joinable(self, left: tuple[int, ...], right: tuple[int, ...]) -> bool:
        """No products, unless the conditions leave no other way."""
        if not self.block.connected:
            return True
        both = {*left, *right}
        return any(
            used <= both and used & {*left} and used & {*right}
            for used in (leaves_of(c, self.block.starts) for c in self.block.conditions)
        )


def _share(conditions: Sequence[Expr]) -> float:
    share = 1.0
    for condition in conditions:
        equality = isinstance(condition, Call) and condition.function == "="
        share *= OF_EQUALITY if equality and columns_of(condition) else OF_OTHERS
    return share
