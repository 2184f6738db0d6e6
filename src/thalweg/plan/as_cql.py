"""A plan as somebody would write it: what EXPLAIN shows of what a node computes.

For people only. Names of results are left out, since those of fragments say nothing, and what CQL
has no words for is shown as the operator that it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from thalweg.plan import blocks
from thalweg.plan.aggregates import AggCall
from thalweg.plan.blocks import over
from thalweg.plan.catalog import Field
from thalweg.plan.expr import Expr
from thalweg.plan.nodes import (
    Aggregate,
    Distinct,
    Node,
    Scan,
    Schema,
    SetOp,
    ToStream,
    Window,
    base_streams,
    inputs_of,
)
from thalweg.plan.text import aggregate_text, expr_text, node_text, window_text

_SELECT = "SELECT "


def as_cql(node: Node) -> str:
    match node:
        case ToStream(kind, source):
            return _selecting(kind.value, as_cql(source))
        case Distinct(source):
            return _selecting("DISTINCT", as_cql(source))
        case SetOp(kind, all_, left, right):
            return f"{as_cql(left)} {kind.value}{' ALL' if all_ else ''} {as_cql(right)}"
    block = blocks.block_of(node, _as_leaf)
    only = block.leaves[0] if len(block.leaves) == 1 else None
    if isinstance(only, Aggregate):
        return _grouped(only, block)
    if only is node and not isinstance(node, Scan | Window):
        return f"{node_text(node)} ({', '.join(map(as_cql, inputs_of(node)))})"
    parts = _Parts.of(block)
    return parts.select([expr_text(e, parts.schema) for e in block.outputs or ()] or ["*"])


def _selecting(word: str, text: str) -> str:
    if text.startswith(_SELECT):
        return f"{_SELECT}{word} {text.removeprefix(_SELECT)}"
    return f"{word} ({text})"


def _as_leaf(node: Node) -> blocks.Block[Node]:
    return blocks.Block((node,), (tuple(f.type for f in node.schema),))


def _grouped(node: Aggregate, above: blocks.Block[Node]) -> str:
    """`above` is what stands over it: HAVING, and what is selected."""
    inner = blocks.block_of(node.input, _as_leaf)
    parts = _Parts.of(inner)
    keys = [expr_text(over(inner.outputs, k), parts.schema) for k in node.keys]
    calls = [aggregate_text(_over(inner.outputs, a), parts.schema) for a in node.aggregates]
    named = zip([*keys, *calls], node.schema, strict=True)
    schema = tuple(Field(text, f.type) for text, f in named)
    what = [expr_text(e, schema) for e in above.exprs()]
    tail = f" GROUP BY {', '.join(keys)}" if keys else ""
    having = [expr_text(c, schema) for c in above.conditions]
    return parts.select(what) + tail + (f" HAVING {' AND '.join(having)}" if having else "")


def _over(outputs: Sequence[Expr] | None, call: AggCall) -> AggCall:
    return call if call.arg is None else replace(call, arg=over(outputs, call.arg))


@dataclass(frozen=True, slots=True)
class _Parts:
    """FROM and WHERE, and columns by names that are told apart."""

    source: str
    where: tuple[str, ...]
    schema: Schema

    @staticmethod
    def of(block: blocks.Block[Node]) -> _Parts:
        names = _told_apart([_name(leaf) for leaf in block.leaves])
        fields = [(n, f) for n, leaf in zip(names, block.leaves, strict=True) for f in leaf.schema]
        all_names = [f.name.lower() for _, f in fields]
        schema = tuple(
            f if all_names.count(f.name.lower()) == 1 else replace(f, name=f"{name}.{f.name}")
            for name, f in fields
        )
        texts = [_leaf_text(leaf, n) for leaf, n in zip(block.leaves, names, strict=True)]
        conditions = tuple(expr_text(c, schema) for c in block.conditions)
        return _Parts(", ".join(texts), conditions, schema)

    def select(self, what: Sequence[str]) -> str:
        where = f" WHERE {' AND '.join(self.where)}" if self.where else ""
        return f"{_SELECT}{', '.join(what)} FROM {self.source}{where}"


def _name(leaf: Node) -> str:
    below = leaf.input if isinstance(leaf, Window) else leaf
    return below.stream.name if isinstance(below, Scan) else "it"


def _told_apart(names: Sequence[str]) -> list[str]:
    """A stream that is read twice is `S` and `S2`."""
    found: list[str] = []
    for place, name in enumerate(names):
        again = names[:place].count(name)
        found.append(f"{name}{again + 1}" if again else name)
    return found


def _leaf_text(leaf: Node, name: str) -> str:
    below, window = leaf, ""
    if isinstance(leaf, Window):
        below = leaf.input
        clock = next(iter(base_streams(below)), None)
        window = f" {window_text(leaf.spec, clock, below.schema)}"
    if isinstance(below, Scan):
        alias = f" {name}" if name != below.stream.name else ""
        return f"{below.stream.name}{window}{alias}"
    return f"({as_cql(below)}){window} {name}"
