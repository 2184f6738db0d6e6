"""Sub-query predicates and left joins, by joins and bag differences alone.

    L semi-join R on θ  =  L ⋈ distinct(values of L's columns in θ that have a match in R)
    L anti-join R       =  L  −  (L semi-join R)
    L left join R       =  (L ⋈ R)  ∪  (L anti-join R, NULLs appended)

So the kernels know no correlation, and all of it is incremental because joins and unions are.
"""

from __future__ import annotations

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.compile.blocks import SAME, block, closed, distinct, identity, mapped
from thalweg.plan.expr import (
    FALSE,
    TRUE,
    Call,
    Col,
    Expr,
    Lit,
    columns_of,
    conjunction,
    conjuncts,
    remap,
    shift,
)
from thalweg.plan.types import BOOLEAN


def semi(left: ph.Op, right: ph.Op, theta: Expr) -> ph.Op:
    """Left rows with at least one right row for which θ is true."""
    width = len(left.types)
    equal: list[tuple[Expr, Expr]] = []
    of_right: list[Expr] = []
    for c in conjuncts(theta):
        if columns_of(c) and min(columns_of(c)) >= width:
            of_right.append(shift(c, -width))
            continue
        pair = _equality(c, width)
        if pair is None:
            return _semi_general(left, right, theta)
        equal.append(pair)
    values = tuple(r for _, r in equal) or (TRUE,)
    matched = distinct(_closed_map(right, of_right, values))
    conditions = tuple(
        Call("=", (a, Col(width + i, b.type)), BOOLEAN) for i, (a, b) in enumerate(equal)
    )
    return closed(block((left, matched), conditions, identity(left)))


def _equality(c: Expr, width: int) -> tuple[Expr, Expr] | None:
    """`left expression = right expression`, the right one over the right side's own columns."""
    if not (isinstance(c, Call) and c.function == "="):
        return None
    a, b = c.args
    if columns_of(a) and min(columns_of(a)) >= width:
        a, b = b, a
    if not columns_of(a) or not columns_of(b):
        return None
    if max(columns_of(a)) < width <= min(columns_of(b)):
        return a, shift(b, -width)
    return None


def _semi_general(left: ph.Op, right: ph.Op, theta: Expr) -> ph.Op:
    """By the distinct values of the left columns that θ looks at."""
    width = len(left.types)
    seen = sorted(c for c in columns_of(theta) if c < width)
    values = tuple(Col(c, left.types[c]) for c in seen) or (TRUE,)
    asked = distinct(_closed_map(left, [], values))
    place = {c: i for i, c in enumerate(seen)}
    moved = remap(theta, lambda c: place[c] if c < width else c - width + len(values))
    answered = closed(block((asked, right), conjuncts(moved), identity(asked)))
    matched = distinct(answered)
    conditions = tuple(
        Call(SAME, (Col(c, left.types[c]), Col(width + i, left.types[c])), BOOLEAN)
        for i, c in enumerate(seen)
    )
    return closed(block((left, matched), conditions, identity(left)))


def _closed_map(op: ph.Op, predicates: list[Expr], exprs: tuple[Expr, ...]) -> ph.Op:
    return closed(block((op,), tuple(predicates), exprs))


def minus(left: ph.Op, right: ph.Op) -> ph.Op:
    return ph.Union(((1, left), (-1, right)))


def left_join(left: ph.Op, right: ph.Op, theta: Expr) -> ph.Op:
    both = identity(left) + tuple(shift(e, len(left.types)) for e in identity(right))
    matched = closed(block((left, right), conjuncts(theta), both))
    alone = minus(left, semi(left, right, theta))
    nulls = tuple(Lit(None, t) for t in right.types)
    return ph.Union(((1, matched), (1, mapped(alone, identity(left) + nulls))))


def marked(left: ph.Op, right: ph.Op, correlation: Expr, match: Expr | None) -> ph.Op:
    """All left rows with their mark: those with true, those with NULL, and the rest."""
    true = semi(left, right, sure(correlation, match))
    parts = [(1, mapped(true, (*identity(left), TRUE)))]
    maybe = true
    if match is not None:
        maybe = semi(left, right, possible(correlation, match))
        unknown = (*identity(left), Lit(None, BOOLEAN))
        parts.append((1, mapped(minus(maybe, true), unknown)))
    parts.append((1, mapped(minus(left, maybe), (*identity(left), FALSE))))
    return ph.Union(tuple(parts))


def sure(correlation: Expr, match: Expr | None) -> Expr:
    """When a row of the sub-query makes IN or EXISTS true."""
    return conjunction([correlation] if match is None else [correlation, match])


def possible(correlation: Expr, match: Expr | None) -> Expr:
    """When a row of the sub-query keeps NOT IN or NOT EXISTS from being true."""
    if match is None:
        return correlation
    unknown = Call("is_null", (match,), BOOLEAN)
    return conjunction([correlation, Call("or", (match, unknown), BOOLEAN)])
