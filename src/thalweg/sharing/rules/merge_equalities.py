"""Equalities without constants, and all between leaves, in one form: classes of equal expressions.

A class `{a, b, c}` is written as `a = b`, `a = c` with the smallest first. Elsewhere that first one
stands for every column of its class: equal values of one type are the same value.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from thalweg.plan.expr import Call, Col, Expr, Lit, columns_of, transform, walk
from thalweg.plan.types import BOOLEAN
from thalweg.sharing.ordering import expr_key
from thalweg.sharing.rules import conditions_of, rewritten

Names = dict[Col, Expr]  # a column -> the first of its class


@dataclass(frozen=True, slots=True)
class Merged:
    equalities: tuple[Expr, ...]
    others: tuple[Expr, ...]
    outputs: tuple[Expr, ...]


def merge_equalities(
    conditions: Sequence[Expr], outputs: tuple[Expr, ...], starts: Sequence[int]
) -> Merged:
    """`starts` says where each leaf's columns begin."""
    equal = [c for c in conditions if _is_equality(c, starts)]
    if not equal:
        return Merged((), tuple(conditions), outputs)
    others = [c for c in conditions if not _is_equality(c, starts)]
    classes = _classes(equal)
    first: Names = {m: members[0] for members in classes for m in members[1:] if isinstance(m, Col)}
    if first:
        kept = [_renamed(c, first) for c in others]
        sides = [
            [m if isinstance(m, Col) else _renamed(m, first) for m in members]
            for members in classes
        ]
        if kept != others or sides != classes:
            # A renamed condition may be simpler, or be an equality of its own: once more.
            pairs = [Call("=", (s[0], m), BOOLEAN) for s in sides for m in s[1:]]
            again = [c for part in (*pairs, *kept) for c in conditions_of(part)]
            return merge_equalities(again, _all_renamed(outputs, first), starts)
    pairs = [Call("=", (m[0], other), BOOLEAN) for m in classes for other in m[1:]]
    return Merged(tuple(pairs), tuple(others), _all_renamed(outputs, first))


def _is_equality(condition: Expr, starts: Sequence[int]) -> bool:
    if not (isinstance(condition, Call) and condition.function == "="):
        return False
    left, right = condition.args
    if isinstance(left, Col) and isinstance(right, Col):
        return True
    if isinstance(right, Lit):
        return False
    sides = [{bisect_right(starts, c) for c in columns_of(a)} for a in (left, right)]
    if not all(sides):
        return False
    between_leaves = len(sides[0]) == len(sides[1]) == 1 and sides[0] != sides[1]
    return between_leaves or not any(isinstance(e, Lit) for e in walk(condition))


def _classes(equalities: Sequence[Expr]) -> list[list[Expr]]:
    """Sorted classes of sorted members."""
    found: list[set[Expr]] = []
    for equality in equalities:
        assert isinstance(equality, Call)
        ends = set(equality.args)
        touched = [c for c in found if c & ends]
        found = [c for c in found if not c & ends]
        found.append(ends.union(*touched))
    return sorted((sorted(c, key=expr_key) for c in found), key=lambda c: expr_key(c[0]))


def _renamed(expr: Expr, first: Names) -> Expr:
    return transform(expr, lambda e: first.get(e, e) if isinstance(e, Col) else e)


def _all_renamed(exprs: tuple[Expr, ...], first: Names) -> tuple[Expr, ...]:
    if not first:
        return exprs
    # Another name may ask for another order of operands.
    return tuple([rewritten(_renamed(e, first)) for e in exprs])
