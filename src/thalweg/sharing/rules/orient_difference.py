"""A difference of two TIMESTAMPs that is compared with a constant has its smaller side first.

So `C.ts - O.ts <= 3 h` and `O.ts - C.ts >= -3 h` are one condition. No such difference leaves 64
bits, in either direction; differences of whole numbers might, and stay.
"""

from __future__ import annotations

from thalweg.plan.expr import Call, Expr, Lit
from thalweg.plan.types import BOOLEAN, INTERVAL, TIMESTAMP
from thalweg.sharing.comparisons import MIRRORED
from thalweg.sharing.ordering import expr_key

_SMALLEST = -(1 << 63)


def orient_difference(expr: Expr) -> Expr:
    match expr:
        case Call(function, (Call("-", (left, right), type_), Lit(int(value), _)), _) if (
            function in MIRRORED
            and type_ == INTERVAL
            and left.type == right.type == TIMESTAMP
            and value != _SMALLEST
            and expr_key(right) < expr_key(left)
        ):
            turned = Call("-", (right, left), INTERVAL)
            return Call(MIRRORED[function], (turned, Lit(-value, INTERVAL)), BOOLEAN)
        case _:
            return expr
