"""Conditions between two sides, taken apart: what can be looked up, and what takes all pairs.

For sub-queries: which rows of the left side have a match on the right one. Expressions are over
both sides' columns side by side, the right ones from `width` on.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from thalweg.plan.expr import (
    Call,
    Expr,
    children,
    columns_of,
    conjunction,
    conjuncts,
    shift,
    transform,
)
from thalweg.plan.types import BOOLEAN, INTERVAL

MOST_ALTERNATIVES = 9  # NOT IN of two columns
COMPARISONS = ("<", "<=", ">", ">=", "<>")


def takes_all_pairs(theta: Expr, width: int) -> bool:
    """Whether only looking at each left row with each right one can tell which have a match."""
    theta = nulls_apart(theta)
    found = alternatives(theta)
    if len(found) > 1:
        return any(takes_all_pairs(a, width) for a in found)
    others = Parts.of(theta, width).others
    return len(others) > 1 or any(comparison(c, width) is None for c in others)


@dataclass(frozen=True)
class Parts:
    """The conditions of θ, by what they speak of."""

    width: int
    of_left: list[Expr]
    of_right: list[Expr]  # over the right side's own columns
    equal: list[tuple[Expr, Expr]]  # left = right, each over its own side's columns
    others: list[Expr]

    @classmethod
    def of(cls, theta: Expr, width: int) -> Parts:
        parts = cls(width, [], [], [], [])
        for c in conjuncts(theta):
            columns = columns_of(c)
            if columns and min(columns) >= width:
                parts.of_right.append(shift(c, -width))
            elif all(column < width for column in columns):
                parts.of_left.append(c)
            elif (pair := equality(c, width)) is not None:
                parts.equal.append(pair)
            else:
                parts.others.append(c)
        return parts


def equality(c: Expr, width: int) -> tuple[Expr, Expr] | None:
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


_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "<>": "<>"}


@dataclass(frozen=True)
class Comparison:
    """left expression, compared with right expression over the right side's own columns."""

    function: str
    left: Expr
    right: Expr


def comparison(c: Expr, width: int) -> Comparison | None:
    if not (isinstance(c, Call) and c.function in COMPARISONS):
        return None
    function, (a, b) = c.function, c.args
    if columns_of(a) and min(columns_of(a)) >= width:
        function, a, b = _MIRRORED[function], b, a
    if not columns_of(a) or not columns_of(b) or b.type in (BOOLEAN, INTERVAL):
        return None
    if max(columns_of(a)) < width <= min(columns_of(b)):
        return Comparison(function, a, shift(b, -width))
    return None


def alternatives(theta: Expr) -> list[Expr]:
    """θ as a disjunction: one condition with OR is taken apart, unless that makes too many."""
    parts = conjuncts(theta)
    for i, c in enumerate(parts):
        if _is_or(c) and _count(theta) <= MOST_ALTERNATIVES:
            return [conjunction([*parts[:i], a, *parts[i + 1 :]]) for a in children(c)]
    return [theta]


def _count(theta: Expr) -> int:
    """The alternatives in the end."""
    return prod(sum(map(_count, children(c))) if _is_or(c) else 1 for c in conjuncts(theta))


def sure(correlation: Expr, match: Expr | None) -> Expr:
    """When a row of the sub-query makes IN or EXISTS true."""
    return conjunction([correlation] if match is None else [correlation, match])


def possible(correlation: Expr, match: Expr | None) -> Expr:
    """When a row of the sub-query keeps NOT IN or NOT EXISTS from being true."""
    if match is None:
        return correlation
    unknown = Call("is_null", (match,), BOOLEAN)
    return conjunction([correlation, Call("or", (match, unknown), BOOLEAN)])


def nulls_apart(theta: Expr) -> Expr:
    """The same condition, in which a comparison is unknown because one of its sides is."""

    def change(e: Expr) -> Expr:
        match e:
            case Call("is_null", (Call("=", sides, _),), _):
                return Call("or", tuple(Call("is_null", (s,), BOOLEAN) for s in sides), BOOLEAN)
            case Call("or", (found, Call("is_null", (again,), _)), _) if found == again and all(
                _is_equality(c) for c in conjuncts(found)
            ):
                # Unknown as a whole: no part is false.
                return conjunction([_not_false(c) for c in conjuncts(found)])
            case Call("or", args, _):
                flat = (a.args if isinstance(a, Call) and _is_or(a) else (a,) for a in args)
                return Call("or", tuple(a for of in flat for a in of), BOOLEAN)
            case _:
                return e

    return transform(theta, change)


def _is_equality(e: Expr) -> bool:
    return isinstance(e, Call) and e.function == "="


def _not_false(equal: Expr) -> Expr:
    unknown = (Call("is_null", (side,), BOOLEAN) for side in children(equal))
    return Call("or", (equal, *unknown), BOOLEAN)


def _is_or(e: Expr) -> bool:
    return isinstance(e, Call) and e.function == "or"
