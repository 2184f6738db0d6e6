"""Sub-query predicates and left joins, by joins and bag differences alone.

    L semi-join R on θ  =  L ⋈ distinct(values of L's columns in θ that have a match in R)
    L anti-join R       =  L  −  (L semi-join R)
    L left join R       =  (L ⋈ R)  ∪  (L anti-join R, NULLs appended)

So the kernels know no correlation, and all of it is incremental because joins and unions are.

Which values have a match is found without looking at all pairs, where θ allows it:

    a = b                 distinct values of b
    a < b                 a < MAX(b); likewise MIN for a > b, and both for a <> b
    θ or φ                the values that θ finds, and those that φ finds
    NOT IN                a = b, or b IS NULL, or a IS NULL: each of these by itself

`lasting` plans are those of queries that began before there were these: an operator's state goes by
its identity, so they stay what they were.
"""

from __future__ import annotations

from collections.abc import Callable

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.compile.blocks import SAME, block, closed, distinct, identity, mapped
from thalweg.plan.aggregates import AggCall
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
from thalweg.plan.matching import (
    Comparison,
    Parts,
    alternatives,
    comparison,
    nulls_apart,
    possible,
    sure,
)
from thalweg.plan.types import BOOLEAN

Semi = Callable[[ph.Op, ph.Op, Expr], ph.Op]


def semi(left: ph.Op, right: ph.Op, theta: Expr) -> ph.Op:
    """Left rows with at least one right row for which θ is true."""
    theta = nulls_apart(theta)
    if len(alternatives(theta)) > 1:
        return _by_values(left, theta, lambda asked, moved: _any_of(asked, right, moved))
    parts = Parts.of(theta, len(left.types))
    if parts.of_left:
        kept = _closed_map(left, parts.of_left, identity(left))
        return semi(
            kept, right, conjunction([c for c in conjuncts(theta) if c not in parts.of_left])
        )
    if not parts.others:
        return _by_equality(left, right, parts)
    if len(parts.others) == 1:
        compared = comparison(parts.others[0], parts.width)
        if compared is not None:
            return _by_range(left, right, parts, compared)
    return _by_values(left, theta, lambda asked, moved: _by_pairs(asked, right, moved))


def _by_equality(left: ph.Op, right: ph.Op, parts: Parts) -> ph.Op:
    values = tuple(r for _, r in parts.equal) or (TRUE,)
    matched = distinct(_closed_map(right, parts.of_right, values))
    return closed(block((left, matched), _equal_to(parts), identity(left)))


def _equal_to(parts: Parts) -> tuple[Expr, ...]:
    """Left expressions equal to the first columns of what is beside them."""
    return tuple(
        Call("=", (a, Col(parts.width + i, b.type)), BOOLEAN)
        for i, (a, b) in enumerate(parts.equal)
    )


def _by_range(left: ph.Op, right: ph.Op, parts: Parts, compared: Comparison) -> ph.Op:
    """One right value is beyond the left one if the extreme is: an aggregate has one row a group,
    so a left row meets it at most once."""
    keys = tuple(r for _, r in parts.equal)
    values = _closed_map(right, parts.of_right, (*keys, compared.right))
    groups = tuple(Col(i, k.type) for i, k in enumerate(keys))
    value = Col(len(keys), compared.right.type)
    extremes = tuple(AggCall(side, value) for side in _EXTREMES[compared.function])
    best = ph.Aggregate(ph.Exchange(values, groups), groups, extremes)
    beyond = [
        Call(compared.function, (compared.left, Col(parts.width + len(keys) + i, e.type)), BOOLEAN)
        for i, e in enumerate(extremes)
    ]
    condition = beyond[0] if len(beyond) == 1 else Call("or", tuple(beyond), BOOLEAN)
    return closed(block((left, best), (*_equal_to(parts), condition), identity(left)))


_EXTREMES = {
    **dict.fromkeys(("<", "<="), ("max",)),
    **dict.fromkeys((">", ">="), ("min",)),
    "<>": ("min", "max"),
}


def _any_of(asked: ph.Op, right: ph.Op, theta: Expr) -> ph.Op:
    found = [(1, semi(asked, right, a)) for a in alternatives(theta)]
    return ph.Union(tuple(found))


def _by_pairs(asked: ph.Op, right: ph.Op, theta: Expr) -> ph.Op:
    """What is left: each asked value with all right rows."""
    return closed(block((asked, right), conjuncts(theta), identity(asked)))


def _by_values(left: ph.Op, theta: Expr, answer: Callable[[ph.Op, Expr], ph.Op]) -> ph.Op:
    """By the distinct values of the left columns that θ looks at: `answer` gives those of them, any
    number of times, for which θ (moved to them) is true of some right row."""
    width = len(left.types)
    seen = sorted(c for c in columns_of(theta) if c < width)
    values = tuple(Col(c, left.types[c]) for c in seen) or (TRUE,)
    asked = distinct(_closed_map(left, [], values))
    place = {c: i for i, c in enumerate(seen)}
    moved = remap(theta, lambda c: place[c] if c < width else c - width + len(values))
    matched = distinct(answer(asked, moved))
    conditions = tuple(
        Call(SAME, (Col(c, left.types[c]), Col(width + i, left.types[c])), BOOLEAN)
        for i, c in enumerate(seen)
    )
    return closed(block((left, matched), conditions, identity(left)))


def lasting_semi(left: ph.Op, right: ph.Op, theta: Expr) -> ph.Op:
    """As it was planned before: all pairs, unless θ is nothing but equalities."""
    parts = Parts.of(theta, len(left.types))
    if parts.of_left or parts.others:
        return _by_values(left, theta, lambda asked, moved: _by_pairs(asked, right, moved))
    return _by_equality(left, right, parts)


def _closed_map(op: ph.Op, predicates: list[Expr], exprs: tuple[Expr, ...]) -> ph.Op:
    return closed(block((op,), tuple(predicates), exprs))


def minus(left: ph.Op, right: ph.Op) -> ph.Op:
    return ph.Union(((1, left), (-1, right)))


def left_join(left: ph.Op, right: ph.Op, theta: Expr, semi: Semi) -> ph.Op:
    both = identity(left) + tuple(shift(e, len(left.types)) for e in identity(right))
    matched = closed(block((left, right), conjuncts(theta), both))
    alone = minus(left, semi(left, right, theta))
    nulls = tuple(Lit(None, t) for t in right.types)
    return ph.Union(((1, matched), (1, mapped(alone, identity(left) + nulls))))


def marked(left: ph.Op, right: ph.Op, correlation: Expr, match: Expr | None, semi: Semi) -> ph.Op:
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
