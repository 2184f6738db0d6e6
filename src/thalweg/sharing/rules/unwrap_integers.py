"""An INTEGER widened to BIGINT only to meet a constant meets it as it is, where the constant fits.

So `v > 3` and `v > CAST(3 AS BIGINT)` speak of the same expression.
"""

from __future__ import annotations

from thalweg.plan.expr import Call, Cast, Expr, Lit
from thalweg.plan.types import BIGINT, BOOLEAN, INTEGER
from thalweg.sharing.comparisons import COMPARISONS


def unwrap_integers(expr: Expr) -> Expr:
    match expr:
        case Call(name, (Cast(arg, target), Lit(int(value), _)), _) if (
            name in COMPARISONS
            and target == BIGINT
            and arg.type == INTEGER
            and -(1 << 31) <= value < 1 << 31
        ):
            return Call(name, (arg, Lit(value, INTEGER)), BOOLEAN)
        case _:
            return expr
