"""What of a plan has to stay in one piece (see `plan/cutting.py`)."""

from __future__ import annotations

from thalweg.placement.from_cql.blocks import block_of
from thalweg.plan.nodes import (
    Aggregate,
    DueRows,
    Node,
    Scan,
    StreamKind,
    Tolerant,
    ToStream,
    base_streams,
    walk,
)
from thalweg.plan.types import INTERVAL, NULL

MOST_LEAVES = 8  # a join of n has 3ⁿ / 2 operators


def must_be_whole(plan: Node, *, late: bool) -> bool:
    """Whether nothing below a plan's last operator may run elsewhere; `late`: some of its streams
    have begun."""
    block, above = block_of(plan)
    chain = above if block is not None else [plan]
    if any(isinstance(n, ToStream) and n.kind is StreamKind.RSTREAM for n in chain):
        return True
    if any(isinstance(n, Tolerant | DueRows) for n in walk(plan)):
        return True  # where a class of readers starts decides which rows are due
    if block is not None and len(block.leaves) > MOST_LEAVES:
        return True
    if any(f.type in (INTERVAL, NULL) for n in walk(plan) if n is not plan for f in n.schema):
        return True  # no stream has such columns
    if not late:
        return False
    leaves = () if block is None else block.leaves
    return any(map(lasts, chain)) or any(not isinstance(x.source, Scan) for x in leaves)


def lasts(node: Node) -> bool:
    """Whether a row stays once it was there."""
    return isinstance(node, Aggregate) and not node.keys


def has_clock(plan: Node) -> bool:
    """Whether it reads more than tables."""
    return any(not s.is_table for s in base_streams(plan))
