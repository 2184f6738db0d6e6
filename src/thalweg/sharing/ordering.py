"""One order of expressions, so that what may stand in any order stands in one."""

from __future__ import annotations

from collections.abc import Sequence

from thalweg.plan.expr import Call, Case, Cast, Col, Expr, Lit, children


def expr_key(expr: Expr) -> str:
    """Different for different expressions; columns sort by number, and before all else."""
    match expr:
        case Col(index, _, _):
            return f"#{index:05}"
        case Call(function, args, _):
            return f"({function} {' '.join(map(expr_key, args))})"
        case Lit(value, type_):
            return f"{value!r}:{type_}"
        case Cast(arg, type_):
            return f"({type_} {expr_key(arg)})"
        case Case():
            return f"(case {' '.join(map(expr_key, children(expr)))})"


def in_order(exprs: Sequence[Expr]) -> tuple[Expr, ...]:
    """Each expression once, sorted."""
    if len(exprs) < 2:
        return tuple(exprs)
    return tuple(sorted(dict.fromkeys(exprs), key=expr_key))
