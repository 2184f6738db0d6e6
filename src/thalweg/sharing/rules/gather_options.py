"""`x = 1 OR x = 2` is `x IN (1, 2)`, as SQL defines it."""

from __future__ import annotations

from thalweg.plan.expr import Call, Expr, Lit
from thalweg.plan.types import BOOLEAN


def gather_options(expr: Expr) -> Expr:
    if not (isinstance(expr, Call) and expr.function == "or"):
        return expr
    options: dict[Expr, list[Expr]] = {}
    rest: list[Expr] = []
    for part in expr.args:
        match part:
            case Call("=", (value, Lit() as option), _):
                options.setdefault(value, []).append(option)
            case Call("in", (value, *listed), _) if all(isinstance(o, Lit) for o in listed):
                options.setdefault(value, []).extend(listed)
            case _:
                rest.append(part)
    gathered: list[Expr] = [
        Call("in" if len(found) > 1 else "=", (value, *found), BOOLEAN)
        for value, found in options.items()
    ]
    if len(gathered) + len(rest) == len(expr.args):
        return expr
    parts = (*gathered, *rest)
    return parts[0] if len(parts) == 1 else Call("or", parts, BOOLEAN)
