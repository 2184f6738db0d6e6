"""What engines refuse, told by name of the engine: planners ask this of nodes that they are not.

Light on purpose: nobody who only plans has to import Spark.
"""

from __future__ import annotations

from thalweg.plan import nodes
from thalweg.plan.engines import NATIVE, NO_ENGINE
from thalweg.plan.expr import Call, Expr, walk
from thalweg.plan.nodes import Node
from thalweg.plan.windows import NOW


def refusal(engine: str, plan: Node) -> str | None:
    """Why an engine can't run a plan; None if it can."""
    if engine == NO_ENGINE:
        return "it only passes streams on"
    return native_refusal(plan) if engine == NATIVE else None


def native_refusal(plan: Node) -> str | None:
    from thalweg.engine.native.limits import check
    from thalweg.engine.native.unsupported import Unsupported

    try:
        query = check(plan)
    except Unsupported as error:
        return f"native can't run {error.what}: {error.why}"
    for source in query.inputs:
        if not source.stream.timestamp_type.is_integer and source.stream.resolution_us < 2:
            return (
                f"native can't run {source.stream.name} by the microsecond: counted so, the "
                "present is beyond the end of Spark's timestamps"
            )
    for expr in (*query.condition, *query.outputs):
        if (letters := _letters(expr)) is not None:
            return (
                f"native can't run {letters.upper()}: Java's letters are not those of other "
                "engines, none of which could take over"
            )
    return None


def _letters(expr: Expr) -> str | None:
    for part in walk(expr):
        if isinstance(part, Call) and part.function in ("upper", "lower"):
            return part.function
    return None


def only_passes_on(plan: Node) -> bool:
    """Whether a plan says what it reads, row for row: there is nothing for an engine to do."""
    if isinstance(plan, nodes.ToStream):
        below = plan.input
        if not isinstance(below, nodes.Project) or not isinstance(below.input, nodes.Window):
            return False
        # As `plan/cutting.py` puts it in a stream's place.
        return plan.kind is nodes.StreamKind.RSTREAM and _is_now(below.input)
    return isinstance(plan, nodes.Project) and isinstance(plan.input, nodes.Scan)


def _is_now(window: nodes.Window) -> bool:
    return isinstance(window.input, nodes.Scan) and window.spec == NOW
