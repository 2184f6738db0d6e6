"""Whether conditions follow from what is known of a core's rows.

Sound always. Complete for what COSMOS 3.2 needs: ranges of columns, equalities of columns, and
differences of timestamps. Of all else a few plain consequences are known, and the same condition
follows from itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from thalweg.plan.expr import Call, Expr, Lit
from thalweg.plan.nodes import Schema
from thalweg.plan.text import expr_text
from thalweg.plan.types import BIGINT, BOOLEAN, INTERVAL
from thalweg.sharing.comparisons import COMPARISONS, MIRRORED
from thalweg.sharing.conditions import classified
from thalweg.sharing.discrete import range_of
from thalweg.sharing.facts import Facts
from thalweg.sharing.ranges import Range
from thalweg.sharing.rules import conditions_of


def gap(facts: Facts, conditions: Sequence[Expr], schema: Schema) -> str | None:
    """Why the conditions do not all follow, with columns called as the schema says."""
    parts = [p for c in conditions for p in conditions_of(facts.renamed(c))]
    wanted = classified((), parts, len(schema))
    for expr, values in wanted.ranges:
        own = facts.range(expr)
        if own is None:
            return f"nothing keeps {expr_text(expr, schema)} in {values}"
        if not values.covers(own):
            return f"{expr_text(expr, schema)} in {own} reaches beyond {values}"
    for condition in (*wanted.joins, *(r.condition for r in wanted.residuals)):
        if not _follows(facts, condition):
            return f"nothing says that {expr_text(condition, schema)}"
    return None


def follows(facts: Facts, condition: Expr) -> bool:
    """Any condition, in whatever form."""
    return all(
        _range_follows(facts, part) or _follows(facts, part)
        for part in conditions_of(facts.renamed(condition))
    )


def _range_follows(facts: Facts, condition: Expr) -> bool:
    match condition:
        case Call(function, (expr, Lit(value, type_)), _) if (
            function in COMPARISONS and value is not None and expr.type == type_
        ):
            own = facts.range(expr)
            if own is None:
                return False
            if function == "<>":
                return own.meet(range_of("=", value, type_)).is_empty
            return range_of(function, value, type_).covers(own)
        case _:
            return False


def _follows(facts: Facts, condition: Expr) -> bool:
    if condition in facts.known or _range_follows(facts, condition):
        return True
    match condition:
        case Call("is_not_null", (expr,), _):
            return facts.range(expr) is not None
        case Call("or", args, _):
            return any(follows(facts, a) for a in args)
        case Call("in", (expr, *options), _):
            each = (Call("=", (expr, o), BOOLEAN) for o in options)
            return any(follows(facts, e) for e in each) or _is_among(facts, expr, options)
        case Call(function, (left, right), _) if function in COMPARISONS:
            return _compare(facts, function, left, right)
        case _:
            return False


def _is_among(facts: Facts, expr: Expr, options: Sequence[Expr]) -> bool:
    """Known to be one of fewer options."""
    return any(
        isinstance(known, Call)
        and known.function == "in"
        and known.args[0] == expr
        and set(known.args[1:]).issubset(options)
        for known in facts.known
    )


def _compare(facts: Facts, function: str, left: Expr, right: Expr) -> bool:
    """Two expressions that are no constants: by equality, by timestamps, by their ranges."""
    if Call(MIRRORED[function], (right, left), BOOLEAN) in facts.known:
        return True
    if function in ("=", "<=", ">=") and any({left, right} <= c for c in facts.classes):
        return True
    if facts.times is not None and left in facts.times.places and right in facts.times.places:
        # As INTERVAL, because no difference is computed that could overflow.
        between = facts.times.range_of(Call("-", (left, right), INTERVAL))
        if function != "<>" and between is not None:
            return range_of(function, 0, BIGINT).covers(between)
    one, other = facts.range(left), facts.range(right)
    if one is None or other is None:
        return False
    match function:
        case "=":
            return one.is_point and one == other
        case "<>":
            return one.meet(other).is_empty
        case "<" | "<=":
            return _is_below(one, other, function == "<=")
        case _:
            return _is_below(other, one, function == ">=")


def _is_below(one: Range, other: Range, or_equal: bool) -> bool:
    """Whether every value of the one is less than every value of the other."""
    if one.high is None or other.low is None:
        return False
    if one.high.value == other.low.value:
        return or_equal or not (one.high.closed and other.low.closed)
    # Below, exactly if nothing lies between the other's start and the one's end.
    return Range(other.low, one.high).is_empty
