"""Select-project-join blocks as operators.

Predicates go to the leaf that they speak of; equalities between leaves become join keys.
"""

from __future__ import annotations

from dataclasses import replace

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.compile.encoding import CODEC
from thalweg.plan.blocks import Block, leaves_of
from thalweg.plan.expr import TRUE, Call, Col, Expr, columns_of, conjunction, shift, transform

SAME = "<=>"  # equal, or both NULL; for columns that stand for themselves


def identity(op: ph.AnyOp) -> tuple[Expr, ...]:
    return tuple(Col(i, t) for i, t in enumerate(op.types))


def nameless(expr: Expr) -> Expr:
    """Column names are for people; equal operators must not differ by them."""
    return transform(expr, lambda e: Col(e.index, e.type) if isinstance(e, Col) else e)


def block(
    leaves: tuple[ph.Op, ...],
    conditions: tuple[Expr, ...] = (),
    outputs: tuple[Expr, ...] | None = None,
) -> Block[ph.Op]:
    return Block(leaves, tuple(leaf.types for leaf in leaves), conditions, outputs)


def closed(found: Block[ph.Op]) -> ph.Op:
    """Push predicates to their leaves, then one Map or one Join."""
    anonymous = replace(found, conditions=tuple(nameless(c) for c in found.conditions))
    local, across = anonymous.conditions_by_leaf()
    exprs = tuple(nameless(e) for e in found.exprs())
    leaves = tuple(map(_filtered, found.leaves, local))
    if len(leaves) == 1:
        return mapped(leaves[0], exprs)
    leaves = tuple(_stored(leaf) for leaf in leaves)
    return ph.Join(leaves, _join_keys(across, found.starts), tuple(across), exprs)


def _filtered(leaf: ph.Op, predicates: list[Expr]) -> ph.Op:
    if not predicates:
        return leaf
    if isinstance(leaf, ph.Source):
        # What looks at a window's bounds has to wait for them.
        now = [p for p in predicates if max(columns_of(p), default=0) < leaf.own]
        predicates = [p for p in predicates if p not in now]
        leaf = replace(leaf, predicate=conjunction([leaf.predicate, *now]))
        if not predicates:
            return leaf
    return ph.Map(leaf, conjunction(predicates), identity(leaf))


def mapped(op: ph.Op, exprs: tuple[Expr, ...]) -> ph.Op:
    if exprs == identity(op):
        return op
    if isinstance(op, ph.Map) and op.exprs == identity(op.input):
        return ph.Map(op.input, op.predicate, exprs)
    return ph.Map(op, TRUE, exprs)


def _stored(leaf: ph.Op) -> ph.Op:
    """A join input: a SteM on a base stream, or a derived relation that every task hears of.

    With its window's bounds, a tuple is several rows: a SteM does not have them.
    """
    is_stem = isinstance(leaf, ph.Source) and leaf.window.bounds is None
    return leaf if is_stem else ph.Exchange(leaf, None)


def _join_keys(conditions: list[Expr], starts: tuple[int, ...]) -> tuple[ph.JoinKey, ...]:
    """Classes of columns that the equalities make equal, by union-find over (input, column)."""
    classes: list[set[tuple[int, Expr]]] = []
    for c in conditions:
        if not (isinstance(c, Call) and c.function in ("=", SAME)):
            continue
        sides = [(leaves_of(a, starts), a) for a in c.args]
        if any(len(of) != 1 for of, _ in sides) or sides[0][0] == sides[1][0]:
            continue
        ends = {(next(iter(of)), shift(a, -starts[next(iter(of))])) for of, a in sides}
        touched = [k for k in classes if k & ends]
        classes = [k for k in classes if not k & ends]
        classes.append(ends.union(*touched))
    # In an order that depends on nothing but the columns: it is part of the join's identity.
    ordered = (tuple(sorted(k, key=lambda m: (m[0], CODEC.encode(m[1])))) for k in classes)
    return tuple(sorted((ph.JoinKey(m) for m in ordered), key=CODEC.encode))


def by_row(op: ph.Op) -> ph.Exchange:
    """Equal rows meet in one task."""
    return ph.Exchange(op, identity(op))


def distinct(inner: ph.Op) -> ph.Op:
    return ph.Distinct(by_row(inner))


def netted(op: ph.Op) -> ph.Exchange:
    """Equal rows meet in one task, to be netted: they need not move where a join's key, by which
    its results are divided already, is among their columns."""
    column = _dividing_column(op)
    if column is None:
        return by_row(op)
    return ph.Exchange(op, (Col(column, op.types[column]),), stays=True)


def _dividing_column(op: ph.Op) -> int | None:
    """The output column by which a join on one key has divided its results among tasks."""
    if not isinstance(op, ph.Join) or len(op.keys) != 1:
        return None
    (key,) = op.keys
    if {i for i, _ in key.members} != set(range(len(op.inputs))):
        return None
    carriers = {shift(e, op.offsets[i]) for i, e in key.members}
    return next((k for k, e in enumerate(op.exprs) if e in carriers), None)
