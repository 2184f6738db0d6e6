"""Leaves stand in order of their streams' names; those of one stream in any order that fits.

Columns move along. For a self-join every order of the leaves of one stream is tried by the caller,
as long as there are few, and the smallest outcome is the normal form.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from math import factorial, prod

from thalweg.plan.expr import Call, Case, Cast, Col, Expr
from thalweg.sharing.block import Leaf

Order = tuple[int, ...]  # places of leaves, in their new order
MOST_ORDERS = 24


def leaf_orders(leaves: Sequence[Leaf]) -> tuple[Order, ...]:
    if len(leaves) == 1:
        return ((0,),)
    names = [leaf.stream.name.lower() for leaf in leaves]
    by_name = tuple(sorted(range(len(names)), key=lambda i: names[i]))
    runs = [[i for i in by_name if names[i] == name] for name in dict.fromkeys(sorted(names))]
    if len(runs) == len(names) or prod(factorial(len(r)) for r in runs) > MOST_ORDERS:
        return (by_name,)
    orders: list[Order] = [()]
    for run in runs:
        orders = [(*o, *p) for o in orders for p in permutations(run)]
    return tuple(orders)


def column_places(leaves: Sequence[Leaf], order: Order) -> list[int]:
    """For each column of the leaves as they were, its place among them in the new order."""
    begins, begin = {}, 0
    for leaf in order:
        begins[leaf] = begin
        begin += len(leaves[leaf].stream.fields)
    return [
        begins[i] + column
        for i, leaf in enumerate(leaves)
        for column in range(len(leaf.stream.fields))
    ]


def moved(expr: Expr, places: Sequence[int]) -> Expr:
    """The expression with its columns at their new places, and without their names."""
    match expr:
        case Col(index, type_, _):
            return Col(places[index], type_)
        case Call(function, args, type_):
            return Call(function, tuple([moved(a, places) for a in args]), type_)
        case Cast(arg, type_):
            return Cast(moved(arg, places), type_)
        case Case(branches, otherwise, type_):
            changed = tuple([(moved(c, places), moved(v, places)) for c, v in branches])
            return Case(changed, moved(otherwise, places), type_)
        case _:
            return expr
