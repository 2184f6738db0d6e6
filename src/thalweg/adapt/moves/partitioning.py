"""What of a plan may stand below a netting union that is partitioned by a key: the reason, or None.

NETWORK: ISTREAM, DSTREAM and non-linear operators stand above the union, unless the partition key
is among their keys or columns. Not partitioned: Rows without Partition By, aggregates without
keys (their partials are), IN, joins without an equality.
"""

from __future__ import annotations

from collections.abc import Mapping

from thalweg.plan.expr import Call, Col, Expr, conjunction, conjuncts
from thalweg.plan.nodes import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    LeftJoin,
    Node,
    Project,
    Scan,
    SetKind,
    SetOp,
    TopK,
    ToStream,
    Window,
)
from thalweg.plan.windows import RowsWindow, SessionWindow

Columns = frozenset[int]  # of a node's output, that have the partition key

ABOVE = "let it stand above the union"


class _Misplaced(Exception):
    pass


def misplaced(plan: Node, key: Mapping[str, int]) -> str | None:
    """Why a plan can't run bucket by bucket, by the column of each stream that is its key."""
    try:
        _keyed(plan, {name.lower(): column for name, column in key.items()})
    except _Misplaced as reason:
        return str(reason)
    return None


def _keyed(plan: Node, key: Mapping[str, int]) -> Columns:
    if isinstance(plan, Scan):
        name = plan.stream.name
        if name.lower() not in key:
            raise _Misplaced(f"{name} has no partition key: name one of its columns")
        return frozenset((key[name.lower()],))
    if isinstance(plan, Window):
        return _windowed(plan, _keyed(plan.input, key))
    if isinstance(plan, Filter):
        if isinstance(plan.input, Join):  # WHERE is where most queries say what they join on
            where = conjunction([plan.input.condition, plan.predicate])
            return _joined(plan.input.inputs, where, key)
        return _keyed(plan.input, key)
    if isinstance(plan, Project):
        return _among(plan.exprs, _keyed(plan.input, key))
    if isinstance(plan, Join):
        return _joined(plan.inputs, plan.condition, key)
    if isinstance(plan, LeftJoin):
        both = _joined((plan.left, plan.right), plan.condition, key)
        return frozenset(c for c in both if c < len(plan.left.schema))  # the right may be NULL
    if isinstance(plan, SetOp):
        found = _keyed(plan.left, key) & _keyed(plan.right, key)
        linear = plan.kind is SetKind.UNION and plan.all
        return found if linear else _needed(found, plan.kind.name, "columns")
    if isinstance(plan, Aggregate):
        if not plan.keys:
            raise _Misplaced(f"an aggregate without keys has no buckets: {ABOVE}, over partials")
        return _needed(_among(plan.keys, _keyed(plan.input, key)), "Aggregate", "keys")
    if isinstance(plan, Distinct):
        return _needed(_keyed(plan.input, key), "Distinct", "columns")
    if isinstance(plan, ToStream):
        return _needed(_keyed(plan.input, key), plan.kind.name, "columns")
    if isinstance(plan, TopK):
        found = _keyed(plan.input, key)
        _needed(_among(plan.partition_by, found), "TopK", "PARTITION BY")
        return found
    raise _Misplaced(f"{type(plan).__name__} depends on rows of all buckets: {ABOVE}")


def _windowed(plan: Window, found: Columns) -> Columns:
    spec = plan.spec
    if isinstance(spec, RowsWindow | SessionWindow) and not found & set(spec.partition_by):
        raise _Misplaced(
            f"{spec} counts rows of several buckets: Partition By the key, or move it whole"
        )
    return found


def _joined(inputs: tuple[Node, ...], condition: Expr, key: Mapping[str, int]) -> Columns:
    """All columns that equal the key, if the key of each input does."""
    keys: list[Columns] = []
    offset = 0
    for node in inputs:
        keys.append(frozenset(offset + column for column in _keyed(node, key)))
        offset += len(node.schema)
    equal = [
        {a.index, b.index}
        for part in conjuncts(condition)
        if isinstance(part, Call) and part.function == "="
        for a, b in [part.args]
        if isinstance(a, Col) and isinstance(b, Col)
    ]
    reached = set(keys[0])
    for _ in equal:
        for pair in equal:
            if pair & reached:
                reached |= pair
    if not all(found & reached for found in keys):
        raise _Misplaced(
            "a join without an equality of the partition keys: rows of different buckets meet; "
            "partition by what it joins on, or move it whole"
        )
    return frozenset(reached)


def _among(exprs: tuple[Expr, ...], found: Columns) -> Columns:
    return frozenset(i for i, e in enumerate(exprs) if isinstance(e, Col) and e.index in found)


def _needed(found: Columns, what: str, among: str) -> Columns:
    if not found:
        raise _Misplaced(
            f"{what} without the partition key among its {among} sees rows of several buckets: "
            f"{ABOVE}"
        )
    return found
