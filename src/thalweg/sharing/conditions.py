"""A core's conditions, told apart: joins, ranges and residuals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from thalweg.plan.expr import Call, Case, Cast, Col, Expr, Lit, Value, walk
from thalweg.plan.types import SqlType
from thalweg.sharing.core import Residual
from thalweg.sharing.discrete import range_of
from thalweg.sharing.ordering import expr_key, in_order
from thalweg.sharing.ranges import Range

RANGES = frozenset(("=", "<", "<=", ">", ">="))
# Their first argument names a unit: it belongs to the function, not to the query's constants.
_NAMES_A_UNIT = frozenset(("extract", "date_trunc"))


@dataclass(frozen=True, slots=True)
class Conditions:
    joins: tuple[Expr, ...]
    ranges: tuple[tuple[Expr, Range], ...]
    residuals: tuple[Residual, ...]


def classified(equalities: Sequence[Expr], others: Sequence[Expr], width: int) -> Conditions:
    """`equalities` are joins whatever they hold."""
    joins = list(equalities)
    ranges: dict[Expr, Range] = {}
    residuals: list[Residual] = []
    for condition in others:
        found = _as_range(condition)
        if found is not None:
            expr, values = found
            ranges[expr] = ranges[expr].meet(values) if expr in ranges else values
        elif any(isinstance(e, Lit) for e in walk(condition)):
            residuals.append(residual(condition, width))
        else:
            joins.append(condition)
    return Conditions(in_order(joins), _sorted_ranges(ranges), _sorted_residuals(residuals))


def _as_range(condition: Expr) -> tuple[Expr, Range] | None:
    match condition:
        case Call(function, (expr, Lit(value, type_)), _) if (
            function in RANGES
            and value is not None
            and expr.type == type_
            and (isinstance(expr, Col) or any(isinstance(e, Col) for e in walk(expr)))
        ):
            return expr, range_of(function, value, type_)
        case _:
            return None


def residual(condition: Expr, width: int) -> Residual:
    """The condition with its constants pulled out; NULL is no constant that could vary."""
    constants: list[Value] = []
    types: list[SqlType] = []

    def pull(e: Expr) -> Expr:
        match e:
            case Lit(value, type_) if value is not None:
                constants.append(value)
                types.append(type_)
                return Col(width + len(constants) - 1, type_)
            case Call(function, (unit, *args), type_) if function in _NAMES_A_UNIT:
                return Call(function, (unit, *[pull(a) for a in args]), type_)
            case Call(function, args, type_):
                return Call(function, tuple([pull(a) for a in args]), type_)
            case Cast(arg, type_):
                return Cast(pull(arg), type_)
            case Case(branches, otherwise, type_):
                pulled = tuple([(pull(c), pull(v)) for c, v in branches])
                return Case(pulled, pull(otherwise), type_)
            case _:
                return e

    template = pull(condition)
    return Residual(template, width, tuple(constants), tuple(types))


def _sorted_ranges(ranges: dict[Expr, Range]) -> tuple[tuple[Expr, Range], ...]:
    if len(ranges) < 2:
        return tuple(ranges.items())
    return tuple(sorted(ranges.items(), key=lambda item: expr_key(item[0])))


def _sorted_residuals(residuals: list[Residual]) -> tuple[Residual, ...]:
    if len(residuals) < 2:
        return tuple(residuals)
    by_text = sorted(dict.fromkeys(residuals), key=lambda r: (expr_key(r.template), r.constants))
    return tuple(by_text)
