"""Scalar functions and operators: what exists, and what type a call has.

Only signatures live here. Each engine has its own table of implementations under the same names,
and a test holds that none is missing. Rules that every implementation keeps:

- `strict` functions give NULL as soon as one argument is NULL;
- a result that its type can't hold (overflow, 1/0, sqrt(-1), a DOUBLE that is not finite) is NULL;
- integer division and `%` truncate towards zero; -0.0 does not exist (it is 0.0);
- rounding is to the nearest, half away from zero; a DOUBLE's decimal value is the shortest that
  reads back as it;
- text is compared by code point; `substring` and `position` count from 1.

`docs/values.md` has the value of each function, cast and aggregate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from thalweg.plan.expr import Call, Case, Cast, Expr, Lit
from thalweg.plan.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    MAX_DECIMAL_PRECISION,
    NULL,
    TIMESTAMP,
    VARCHAR,
    Kind,
    SqlType,
    can_cast,
    common_type,
    decimal,
)


class TypeMismatch(ValueError):
    """Arguments that a function does not take; the message is meant for the query's author."""


# A signature takes the arguments' types and gives (the types to cast them to, the result's type).
Signature = Callable[[tuple[SqlType, ...]], tuple[tuple[SqlType, ...], SqlType]]


@dataclass(frozen=True, slots=True)
class Function:
    name: str
    signature: Signature
    strict: bool = True


def call(name: str, *args: Expr) -> Expr:
    """A well-typed call: overloads resolved, casts inserted. Raises TypeMismatch."""
    function = FUNCTIONS.get(name)
    if function is None:
        raise TypeMismatch(f"there is no function {name.upper()}")
    wanted, result = function.signature(tuple(a.type for a in args))
    return Call(name, tuple(cast(a, t) for a, t in zip(args, wanted, strict=True)), result)


def case(branches: list[tuple[Expr, Expr]], otherwise: Expr | None = None) -> Expr:
    """CASE with all values brought to one type."""
    fallback = otherwise if otherwise is not None else Lit(None, NULL)
    result = _merge("CASE", tuple(v.type for _, v in branches) + (fallback.type,))
    conditions = [cast(c, BOOLEAN) for c, _ in branches]
    values = [cast(v, result) for _, v in branches]
    return Case(tuple(zip(conditions, values, strict=True)), cast(fallback, result), result)


def cast(arg: Expr, target: SqlType) -> Expr:
    if arg.type == target:
        return arg
    if isinstance(arg, Lit) and arg.value is None:
        return Lit(None, target)
    if not can_cast(arg.type, target):
        raise TypeMismatch(f"{arg.type} can't be used as {target}")
    return (_widened(arg, target) if isinstance(arg, Lit) else None) or Cast(arg, target)


def _widened(lit: Lit, target: SqlType) -> Lit | None:
    """A constant in a wider type, so that `price < 300` compares with 300.0 and not with a cast."""
    value = lit.value
    if common_type(lit.type, target) != target:
        return None
    if target == DOUBLE and isinstance(value, (int, Decimal)):
        return Lit(float(value), target)
    if target == BIGINT:
        return Lit(value, target)
    if target == TIMESTAMP and isinstance(value, date):
        return Lit(datetime(value.year, value.month, value.day), target)
    if target.kind is Kind.DECIMAL and isinstance(value, (int, Decimal)):
        sign, digits, exponent = Decimal(value).as_tuple()
        digits += (0,) * (target.scale + int(exponent))
        if len(digits) <= MAX_DECIMAL_PRECISION:  # else the cast is NULL
            return Lit(Decimal((sign, digits, -target.scale)), target)
    return None


# --- signatures ---------------------------------------------------------------------------------


def _arity(name: str, types: tuple[SqlType, ...], low: int, high: int | None) -> None:
    if len(types) < low or (high is not None and len(types) > high):
        wanted = str(low) if low == high else f"{low} or more" if high is None else f"{low}-{high}"
        raise TypeMismatch(f"{name.upper()} takes {wanted} arguments, not {len(types)}")


def _merge(name: str, types: tuple[SqlType, ...]) -> SqlType:
    merged = NULL
    for t in types:
        common = common_type(merged, t)
        if common is None:
            raise TypeMismatch(f"{name.upper()} can't mix {merged} and {t}")
        merged = common
    return merged


def _fits(given: SqlType, wanted: SqlType) -> bool:
    """Whether an argument may be cast silently: NULL to anything, a number to a wider number."""
    if given == wanted or given.kind is Kind.NULL:
        return True
    return common_type(given, wanted) == wanted


def _fixed(name: str, wanted: tuple[SqlType, ...], result: SqlType, optional: int = 0) -> Signature:
    def sign(types: tuple[SqlType, ...]) -> tuple[tuple[SqlType, ...], SqlType]:
        _arity(name, types, len(wanted) - optional, len(wanted))
        for position, (given, want) in enumerate(zip(types, wanted, strict=False), 1):
            if not _fits(given, want):
                raise TypeMismatch(f"{name.upper()}: argument {position} is {given}, not {want}")
        return wanted[: len(types)], result

    return sign


def _comparison(name: str) -> Signature:
    def sign(types: tuple[SqlType, ...]) -> tuple[tuple[SqlType, ...], SqlType]:
        _arity(name, types, 2, 2)
        common = common_type(*types)
        if common is None:
            raise TypeMismatch(f"{types[0]} can't be compared with {types[1]}")
        return (common, common), BOOLEAN

    return sign


def _merged(
    name: str, low: int, result: SqlType | None = None, high: int | None = None
) -> Signature:
    """All arguments of one type, which is also the result's unless said otherwise."""

    def sign(types: tuple[SqlType, ...]) -> tuple[tuple[SqlType, ...], SqlType]:
        _arity(name, types, low, high)
        common = _merge(name, types)
        return (common,) * len(types), result or common

    return sign


def _logic(name: str, low: int, high: int | None) -> Signature:
    def sign(types: tuple[SqlType, ...]) -> tuple[tuple[SqlType, ...], SqlType]:
        _arity(name, types, low, high)
        for t in types:
            if t not in (BOOLEAN, NULL):
                raise TypeMismatch(f"{name.upper()} takes BOOLEAN, not {t}")
        return (BOOLEAN,) * len(types), BOOLEAN

    return sign


def _any(result: SqlType, name: str = "IS NULL") -> Signature:
    def sign(types: tuple[SqlType, ...]) -> tuple[tuple[SqlType, ...], SqlType]:
        _arity(name, types, 1, 1)
        return types, result

    return sign


def _arithmetic(name: str) -> Signature:
    def sign(types: tuple[SqlType, ...]) -> tuple[tuple[SqlType, ...], SqlType]:
        _arity(name, types, 2, 2)
        temporal = _temporal_arithmetic(name, *types)
        if temporal is not None:
            return temporal
        common = common_type(*types)
        if common is None or not (common.is_numeric or common == NULL):
            raise TypeMismatch(f"{types[0]} {name} {types[1]} is not defined")
        if common.kind is Kind.DECIMAL:
            return _decimal_arithmetic(name, types, common)
        if common.is_integer or common == NULL:
            return (BIGINT, BIGINT), BIGINT
        return (common, common), common

    return sign


def _decimal_arithmetic(
    name: str, types: tuple[SqlType, ...], common: SqlType
) -> tuple[tuple[SqlType, ...], SqlType]:
    if name == "/":
        return (DOUBLE, DOUBLE), DOUBLE
    if name == "*":
        scale = types[0].scale + types[1].scale
        if scale > MAX_DECIMAL_PRECISION:
            raise TypeMismatch(f"{types[0]} * {types[1]} has more than 38 digits behind the point")
        return (decimal(types[0].scale), decimal(types[1].scale)), decimal(scale)
    return (common, common), common


def _temporal_arithmetic(
    name: str, left: SqlType, right: SqlType
) -> tuple[tuple[SqlType, ...], SqlType] | None:
    if name in "+-" and left.is_temporal and right == INTERVAL:
        return (TIMESTAMP, INTERVAL), TIMESTAMP
    if name == "+" and left == INTERVAL and right.is_temporal:
        return (INTERVAL, TIMESTAMP), TIMESTAMP
    if name == "-" and left.is_temporal and right.is_temporal:
        return (TIMESTAMP, TIMESTAMP), INTERVAL
    if name in "+-" and left == right == INTERVAL:
        return (INTERVAL, INTERVAL), INTERVAL
    if name in "+-" and left == DATE and right.is_integer:
        return (DATE, BIGINT), DATE
    if name == "*" and {left.kind, right.kind} in (
        {Kind.INTERVAL, Kind.INTEGER},
        {Kind.INTERVAL, Kind.BIGINT},
    ):
        return (left, right), INTERVAL
    return None


def _same_number(name: str, doubles_only: bool = False) -> Signature:
    def sign(types: tuple[SqlType, ...]) -> tuple[tuple[SqlType, ...], SqlType]:
        _arity(name, types, 1, 1)
        (t,) = types
        if t == INTERVAL and name in ("neg", "abs"):
            return types, t
        if not (t.is_numeric or t == NULL):
            raise TypeMismatch(f"{name.upper()} takes a number, not {t}")
        result = DOUBLE if doubles_only else BIGINT if t.is_integer or t == NULL else t
        return (result,), result

    return sign


def _round(types: tuple[SqlType, ...]) -> tuple[tuple[SqlType, ...], SqlType]:
    """ROUND(x [, digits]), half away from zero."""
    _arity("round", types, 1, 2)
    if not (types[0].is_numeric or types[0] == NULL):
        raise TypeMismatch(f"ROUND takes a number, not {types[0]}")
    if len(types) == 2 and not (types[1].is_integer or types[1] == NULL):
        raise TypeMismatch(f"ROUND's digits are INTEGER, not {types[1]}")
    result = BIGINT if types[0].is_integer or types[0] == NULL else types[0]
    return (result, *(INTEGER for _ in types[1:])), result


def _temporal_part(types: tuple[SqlType, ...]) -> tuple[tuple[SqlType, ...], SqlType]:
    """EXTRACT(part FROM x): the part is the first argument, a VARCHAR literal."""
    _arity("extract", types, 2, 2)
    if types[1] == INTERVAL:
        return (VARCHAR, INTERVAL), BIGINT
    if not (types[1].is_temporal or types[1] == NULL):
        raise TypeMismatch(f"EXTRACT takes a DATE, TIMESTAMP or INTERVAL, not {types[1]}")
    return (VARCHAR, TIMESTAMP), BIGINT


# EXTRACT's and DATE_TRUNC's parts; of an INTERVAL only those in INTERVAL_PARTS, as its whole length
# in that unit, truncated towards zero. EPOCH is whole seconds.
EXTRACT_PARTS = ("year", "month", "day", "hour", "minute", "second", "dow", "doy", "epoch")
INTERVAL_PARTS = ("day", "hour", "minute", "second", "epoch", "millisecond")
TRUNC_PARTS = ("year", "month", "week", "day", "hour", "minute", "second")

FUNCTIONS: dict[str, Function] = {
    f.name: f
    for f in (
        *(Function(op, _comparison(op)) for op in ("=", "<>", "<", "<=", ">", ">=")),
        *(Function(op, _arithmetic(op)) for op in ("+", "-", "*", "/", "%")),
        Function("and", _logic("and", 1, None), strict=False),
        Function("or", _logic("or", 1, None), strict=False),
        Function("not", _logic("not", 1, 1)),
        Function("is_null", _any(BOOLEAN), strict=False),
        Function("is_not_null", _any(BOOLEAN), strict=False),
        # x IN (a, b, …): true if equal to one, else NULL if x or one of them is NULL, else false
        Function("in", _merged("in", 2, BOOLEAN), strict=False),
        Function("like", _fixed("like", (VARCHAR, VARCHAR), BOOLEAN)),
        Function("coalesce", _merged("coalesce", 1), strict=False),
        Function("nullif", _merged("nullif", 2, high=2), strict=False),
        Function("greatest", _merged("greatest", 1)),
        Function("least", _merged("least", 1)),
        Function("neg", _same_number("neg")),
        Function("abs", _same_number("abs")),
        Function("sign", _same_number("sign")),
        Function("floor", _same_number("floor")),
        Function("ceil", _same_number("ceil")),
        Function("round", _round),
        Function("sqrt", _same_number("sqrt", doubles_only=True)),
        Function("exp", _same_number("exp", doubles_only=True)),
        Function("ln", _same_number("ln", doubles_only=True)),
        Function("power", _fixed("power", (DOUBLE, DOUBLE), DOUBLE)),
        Function("upper", _fixed("upper", (VARCHAR,), VARCHAR)),
        Function("lower", _fixed("lower", (VARCHAR,), VARCHAR)),
        Function("length", _fixed("length", (VARCHAR,), BIGINT)),
        Function("trim", _fixed("trim", (VARCHAR,), VARCHAR)),
        Function("ltrim", _fixed("ltrim", (VARCHAR,), VARCHAR)),
        Function("rtrim", _fixed("rtrim", (VARCHAR,), VARCHAR)),
        Function("substring", _fixed("substring", (VARCHAR, BIGINT, BIGINT), VARCHAR, optional=1)),
        Function("replace", _fixed("replace", (VARCHAR, VARCHAR, VARCHAR), VARCHAR)),
        Function("position", _fixed("position", (VARCHAR, VARCHAR), BIGINT)),
        Function("starts_with", _fixed("starts_with", (VARCHAR, VARCHAR), BOOLEAN)),
        # Whether two texts of words between commas have a word in common.
        Function("has_any", _fixed("has_any", (VARCHAR, VARCHAR), BOOLEAN)),
        Function("||", _fixed("||", (VARCHAR, VARCHAR), VARCHAR)),
        Function("extract", _temporal_part),
        Function("date_trunc", _fixed("date_trunc", (VARCHAR, TIMESTAMP), TIMESTAMP)),
        # Which of plan/buckets' 128 a value falls in; NULL has one, too: no row is without.
        Function("bucket", _any(BIGINT, "bucket"), strict=False),
        Function("add_months", _fixed("add_months", (TIMESTAMP, BIGINT), TIMESTAMP)),
    )
}
