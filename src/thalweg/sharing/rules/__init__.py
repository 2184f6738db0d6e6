"""Rewriting to the normal form: one rule per file, in the order of these tuples.

A rule takes an expression and gives an equal one, or the same object where it has nothing to say.
`EVERYWHERE` rules keep the value, NULL included, and so may be applied to any part of an
expression; `only_if_true` is for whole conditions.
"""

from __future__ import annotations

from collections.abc import Callable

from thalweg.plan.expr import Call, Case, Cast, Col, Expr, Lit, conjuncts
from thalweg.sharing.comparisons import COMPARISONS
from thalweg.sharing.rules.fold_constants import fold_constants
from thalweg.sharing.rules.gather_options import gather_options
from thalweg.sharing.rules.order_operands import order_operands
from thalweg.sharing.rules.order_options import order_options
from thalweg.sharing.rules.orient_comparison import orient_comparison
from thalweg.sharing.rules.orient_difference import orient_difference
from thalweg.sharing.rules.push_not import push_not
from thalweg.sharing.rules.truth import only_if_true
from thalweg.sharing.rules.unwrap_integers import unwrap_integers

Rule = Callable[[Expr], Expr]

EVERYWHERE: tuple[Rule, ...] = (
    fold_constants,
    push_not,
    order_options,
    orient_comparison,
    orient_difference,
    unwrap_integers,
    gather_options,
    order_operands,
)


def rewritten(expr: Expr) -> Expr:
    """The expression with no rule left to apply, from its leaves up."""
    match expr:
        case Col() | Lit():
            return expr
        case Call(function, args, type_):
            parts = tuple([rewritten(a) for a in args])
            expr = expr if parts == args else Call(function, parts, type_)
        case Cast(arg, type_):
            return Cast(rewritten(arg), type_)
        case Case(branches, otherwise, type_):
            changed = tuple([(rewritten(c), rewritten(v)) for c, v in branches])
            return Case(changed, rewritten(otherwise), type_)
    for rule in EVERYWHERE:
        result = rule(expr)
        if result is not expr:
            return rewritten(result)
    return expr


def conditions_of(predicate: Expr) -> tuple[Expr, ...]:
    """What a row must meet, part by part."""
    if _is_plain(predicate):
        return (predicate,)
    found: list[Expr] = []
    for part in conjuncts(rewritten(predicate)):
        result = only_if_true(part)
        found += (part,) if result is part else conditions_of(result)
    return tuple(found)


def _is_plain(condition: Expr) -> bool:
    """A column compared with a constant: nothing to do, and by far the most common."""
    match condition:
        case Call(function, (Col(), Lit(value, _)), _):
            return value is not None and function in COMPARISONS
        case _:
            return False
