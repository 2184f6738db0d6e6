"""What this engine takes, told without Spark and before anything runs."""

from __future__ import annotations

from thalweg.engine.native.spj import SelectProjectJoin, flatten
from thalweg.engine.native.unsupported import Unsupported
from thalweg.plan.expr import Call, Cast, Expr, Lit, walk
from thalweg.plan.nodes import Node
from thalweg.plan.types import DOUBLE, VARCHAR

# An instant is a millisecond of event time, and Spark counts event time in microseconds.
MOST_INSTANTS = (1 << 63) // 1000 // 4

# Arguments that must be constants, by position, and why.
CONSTANTS = {
    "like": (1, "LIKE with a computed pattern", "Spark reads escapes in another way"),
    "round": (1, "ROUND to a computed number of digits", "Spark wants a constant there"),
    "extract": (0, "EXTRACT of a computed part", "Spark wants a constant there"),
    "date_trunc": (0, "DATE_TRUNC to a computed part", "Spark wants a constant there"),
}
# Java's own are within one unit in the last place, and not always the nearest value.
ROUGH = ("exp", "ln", "power")


def check(plan: Node) -> SelectProjectJoin:
    """The plan in this engine's form; raises Unsupported where it has none."""
    query = flatten(plan)
    for source in query.inputs:
        if source.length is not None and source.length >= MOST_INSTANTS:
            raise Unsupported(
                f"a window of {source.length} instants", "Spark's timestamps do not reach that far"
            )
    for expr in (*query.condition, *query.outputs):
        check_expr(expr)
    return query


def check_expr(expr: Expr) -> None:
    for part in walk(expr):
        match part:
            case Cast(arg, target) if (arg.type, target) == (DOUBLE, VARCHAR):
                raise Unsupported(
                    "CAST of DOUBLE to VARCHAR", "Spark writes a DOUBLE in another form"
                )
            case Call(function, _, _) if function in ROUGH:
                raise Unsupported(function.upper(), "Spark may round its last place otherwise")
            case Call("bucket", _, _):
                raise Unsupported("BUCKET", "Spark hashes values otherwise")
            case Call(function, args, _) if function in CONSTANTS:
                position, what, why = CONSTANTS[function]
                if len(args) > position and not isinstance(args[position], Lit):
                    raise Unsupported(what, why)
            case _:
                pass
