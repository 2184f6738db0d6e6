"""Plan expressions as Polars expressions, with the value rules of `thalweg.plan.functions`."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, reduce

import polars as pl

from thalweg.engine.shared import rowwise
from thalweg.engine.shared.casts import cast
from thalweg.engine.shared.frames import dtype, name
from thalweg.engine.shared.rowwise import by_row
from thalweg.plan.expr import Call, Case, Cast, Col, Expr, Lit, columns_of
from thalweg.plan.types import BOOLEAN, Kind, SqlType

_OPS: dict[str, Callable[[pl.Expr, pl.Expr], pl.Expr]] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
}
_ZERO = pl.lit(0, dtype=pl.Int128)  # Polars has no minus sign for 128 bits


@lru_cache(maxsize=65_536)
def to_polars(expr: Expr) -> pl.Expr:
    """An expression over columns `c0`, `c1`, … of a frame."""
    compiled = _compiled(expr)
    if isinstance(expr, Col | Lit) or columns_of(expr):
        return compiled
    # Without columns it is a constant: computed once, and then as long as any frame.
    return literal(pl.select(compiled).item(), expr.type)


def _compiled(expr: Expr) -> pl.Expr:
    match expr:
        case Col(index, _, _):
            return pl.col(name(index))
        case Lit(value, type_):
            return literal(value, type_)
        case Cast(arg, target):
            return cast(to_polars(arg), arg.type, target)
        case Case(branches, otherwise, _):
            result = to_polars(otherwise)
            for condition, value in reversed(branches):
                result = pl.when(to_polars(condition)).then(to_polars(value)).otherwise(result)
            return result
        case Call():
            return _call(expr)


def literal(value: object, type_: SqlType) -> pl.Expr:
    return pl.lit(value, dtype=dtype(type_))


def _call(expr: Call) -> pl.Expr:
    args = [to_polars(a) for a in expr.args]
    types = [a.type for a in expr.args]
    if expr.function in _PLAIN:
        return _PLAIN[expr.function](*args)
    return _TYPED[expr.function](expr, args, types)


def _finite(x: pl.Expr) -> pl.Expr:
    """DOUBLE results that are not finite are NULL; adding 0.0 turns -0.0 into 0.0."""
    return pl.when(x.is_finite()).then(x + 0.0)


def _wide(op: Callable[[pl.Expr, pl.Expr], pl.Expr], a: pl.Expr, b: pl.Expr) -> pl.Expr:
    """Integer arithmetic in 128 bits, so that what overflows 64 becomes NULL and never wraps."""
    return op(a.cast(pl.Int128), b.cast(pl.Int128)).cast(pl.Int64, strict=False)


def _arithmetic(expr: Call, args: list[pl.Expr], types: list[SqlType]) -> pl.Expr:
    a, b = args
    left, right = types
    if expr.type.kind in (Kind.TIMESTAMP, Kind.DATE, Kind.INTERVAL):
        return _temporal(expr.function, a, b, left, right)
    if expr.function in _OPS:
        op = _OPS[expr.function]
        if expr.type.kind is Kind.DOUBLE:
            return _finite(op(a, b))
        if expr.type.kind is Kind.DECIMAL:
            target = dtype(expr.type)
            return op(a.cast(target, strict=False), b.cast(target, strict=False)).cast(target)
        return _wide(op, a, b)
    if expr.function == "/":
        if expr.type.kind is Kind.DOUBLE:
            return pl.when(b != 0).then(_finite(a / b))
        return _truncated_division(a, b)
    return _remainder(a, b, expr.type)


def _truncated_division(a: pl.Expr, b: pl.Expr) -> pl.Expr:
    wide_a, wide_b = a.cast(pl.Int128), pl.when(b != 0).then(b).cast(pl.Int128)
    quotient = wide_a.abs() // wide_b.abs()
    negative = (a < 0) != (b < 0)
    signed = pl.when(negative).then(_ZERO - quotient).otherwise(quotient)
    return signed.cast(pl.Int64, strict=False)


def _remainder(a: pl.Expr, b: pl.Expr, type_: SqlType) -> pl.Expr:
    """The sign is the dividend's, as with truncating division."""
    divisor = pl.when(b != 0).then(b)
    if type_.kind is Kind.DECIMAL:
        scale = type_.scale
        wide = _remainder(_unscaled(a, scale), _unscaled(b, scale), SqlType(Kind.BIGINT))
        return _scaled(wide, type_)
    if type_.kind is Kind.DOUBLE:
        return _finite(by_row(math.fmod, pl.Float64(), a, divisor))
    wide_a, wide_b = a.cast(pl.Int128), divisor.cast(pl.Int128)
    rest = wide_a.abs() % wide_b.abs()
    return pl.when(a < 0).then(_ZERO - rest).otherwise(rest).cast(pl.Int64, strict=False)


def _unscaled(x: pl.Expr, scale: int) -> pl.Expr:
    return (x.cast(pl.Decimal(38, scale)) * 10**scale).cast(pl.Int128)


def _scaled(x: pl.Expr, type_: SqlType) -> pl.Expr:
    return (x.cast(pl.Decimal(38, type_.scale)) / 10**type_.scale).cast(dtype(type_))


def _temporal(function: str, a: pl.Expr, b: pl.Expr, left: SqlType, right: SqlType) -> pl.Expr:
    if left.kind is Kind.DATE and right.is_integer:
        moved = _wide(_OPS[function], a.cast(pl.Int32).cast(pl.Int64), b)
        inside = moved.is_between(_EARLIEST_DAY, _LATEST_DAY)
        return pl.when(inside).then(moved).cast(pl.Int32).cast(pl.Date)
    micros_a = a.cast(pl.Int64) if left.is_temporal else a
    micros_b = b.cast(pl.Int64) if right.is_temporal else b
    result = _wide(_OPS[function], micros_a, micros_b)
    if left.is_temporal != right.is_temporal:
        return _bounded_timestamp(result)
    return result


# Years 1 to 9999, what Python's datetime, Spark's and everybody's printing agree on.
_EARLIEST_DAY, _LATEST_DAY = -719_162, 2_932_896
_EARLIEST_US, _LATEST_US = -62_135_596_800_000_000, 253_402_300_799_999_999


def _bounded_timestamp(micros: pl.Expr) -> pl.Expr:
    inside = micros.is_between(_EARLIEST_US, _LATEST_US)
    return pl.when(inside).then(micros).cast(pl.Datetime("us"))


def _in(_: Call, args: list[pl.Expr], __: list[SqlType]) -> pl.Expr:
    return reduce(lambda x, y: x | y, [args[0] == other for other in args[1:]])


def _like(expr: Call, args: list[pl.Expr], _: list[SqlType]) -> pl.Expr:
    pattern = expr.args[1]
    if isinstance(pattern, Lit) and isinstance(pattern.value, str):
        return args[0].str.contains(rowwise.like_regex(pattern.value))
    return by_row(rowwise.like, pl.Boolean(), *args)


def _round(expr: Call, args: list[pl.Expr], types: list[SqlType]) -> pl.Expr:
    digits = args[1] if len(args) == 2 else pl.lit(0, dtype=pl.Int32)
    by_kind = {Kind.DOUBLE: rowwise.round_double, Kind.DECIMAL: rowwise.round_decimal}
    function = by_kind.get(types[0].kind, rowwise.round_whole)
    return by_row(function, dtype(expr.type), args[0], digits)


def _floor_or_ceil(expr: Call, args: list[pl.Expr], types: list[SqlType]) -> pl.Expr:
    (x,) = args
    if types[0].is_integer:
        return x
    return (
        _finite(x.floor() if expr.function == "floor" else x.ceil())
        if (types[0].kind is Kind.DOUBLE)
        else (x.floor() if expr.function == "floor" else x.ceil()).cast(dtype(types[0]))
    )


def _neg(expr: Call, args: list[pl.Expr], types: list[SqlType]) -> pl.Expr:
    (x,) = args
    if types[0].kind is Kind.DOUBLE:
        return 0.0 - x
    if types[0].kind is Kind.DECIMAL:
        return -x
    return _wide(lambda zero, y: zero - y, pl.lit(0, dtype=pl.Int64), x)


def _abs(expr: Call, args: list[pl.Expr], types: list[SqlType]) -> pl.Expr:
    return pl.when(args[0] < 0).then(_neg(expr, args, types)).otherwise(args[0])


def _sign(expr: Call, args: list[pl.Expr], types: list[SqlType]) -> pl.Expr:
    (x,) = args
    one, zero = (pl.lit(n).cast(dtype(expr.type)) for n in (1, 0))
    return pl.when(x > 0).then(one).when(x < 0).then(-one).when(x == 0).then(zero)


def _power(_: Call, args: list[pl.Expr], __: list[SqlType]) -> pl.Expr:
    base, exponent = args
    return pl.when((base != 0) | (exponent >= 0)).then(_finite(base.pow(exponent)))


def _substring(_: Call, args: list[pl.Expr], __: list[SqlType]) -> pl.Expr:
    """Characters from `start` (counted from 1) on; a start before the text shortens the length."""
    text, start = args[0], args[1].cast(pl.Int64)
    first = pl.max_horizontal(start, pl.lit(1, dtype=pl.Int64))
    if len(args) == 2:
        sliced = text.str.slice(first - 1)
        return pl.when(start.is_not_null()).then(sliced)
    length = args[2].cast(pl.Int64)
    end = pl.max_horizontal(start + length, first)
    return pl.when(start.is_not_null() & (length >= 0)).then(text.str.slice(first - 1, end - first))


def _replace(_: Call, args: list[pl.Expr], __: list[SqlType]) -> pl.Expr:
    return by_row(lambda t, old, new: t.replace(old, new) if old else t, pl.String(), *args)


def _position(_: Call, args: list[pl.Expr], __: list[SqlType]) -> pl.Expr:
    return by_row(lambda part, text: text.find(part) + 1, pl.Int64(), *args)


def _part(expr: Call) -> str:
    part = expr.args[0]
    assert isinstance(part, Lit), "the binder holds this"
    return str(part.value).lower()


_MICROS = {
    "millisecond": 1_000,
    "second": 1_000_000,
    "epoch": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
}


def _extract(expr: Call, args: list[pl.Expr], types: list[SqlType]) -> pl.Expr:
    part, x = _part(expr), args[1]
    if types[1].kind is Kind.INTERVAL:
        return _truncated_division(x, pl.lit(_MICROS[part], dtype=pl.Int64))
    parts: dict[str, Callable[[], pl.Expr]] = {
        "year": x.dt.year,
        "month": x.dt.month,
        "day": x.dt.day,
        "hour": x.dt.hour,
        "minute": x.dt.minute,
        "second": x.dt.second,
        "dow": lambda: x.dt.weekday() % 7,
        "doy": x.dt.ordinal_day,
        "epoch": lambda: x.cast(pl.Int64) // 1_000_000,
    }
    return parts[part]().cast(pl.Int64)


def _date_trunc(expr: Call, args: list[pl.Expr], _: list[SqlType]) -> pl.Expr:
    steps = {
        "year": "1y",
        "month": "1mo",
        "week": "1w",
        "day": "1d",
        "hour": "1h",
        "minute": "1m",
        "second": "1s",
    }
    return args[1].dt.truncate(steps[_part(expr)])


def _add_months(_: Call, args: list[pl.Expr], __: list[SqlType]) -> pl.Expr:
    return by_row(rowwise.add_months, pl.Datetime("us"), *args)


def _greatest(expr: Call, args: list[pl.Expr], _: list[SqlType]) -> pl.Expr:
    pick = (
        (lambda a, b: pl.when(a >= b).then(a).otherwise(b))
        if (expr.function == "greatest")
        else (lambda a, b: pl.when(a <= b).then(a).otherwise(b))
    )
    known = reduce(lambda x, y: x & y, [a.is_not_null() for a in args])
    return pl.when(known).then(reduce(pick, args))


_PLAIN: dict[str, Callable[..., pl.Expr]] = {
    "=": lambda a, b: a == b,
    "<=>": lambda a, b: a.eq_missing(b),
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "and": lambda *a: reduce(lambda x, y: x & y, a),
    "or": lambda *a: reduce(lambda x, y: x | y, a),
    "not": lambda a: ~a,
    "is_null": lambda a: a.is_null(),
    "is_not_null": lambda a: a.is_not_null(),
    "coalesce": lambda *a: pl.coalesce(*a),
    "nullif": lambda a, b: pl.when((a == b).fill_null(False)).then(None).otherwise(a),
    "sqrt": lambda a: pl.when(a >= 0).then(_finite(a.sqrt())),
    "exp": lambda a: _finite(a.exp()),
    "ln": lambda a: pl.when(a > 0).then(_finite(a.log())),
    "upper": lambda a: by_row(str.upper, pl.String(), a),
    "lower": lambda a: by_row(str.lower, pl.String(), a),
    "length": lambda a: a.str.len_chars().cast(pl.Int64),
    "trim": lambda a: a.str.strip_chars(" "),
    "ltrim": lambda a: a.str.strip_chars_start(" "),
    "rtrim": lambda a: a.str.strip_chars_end(" "),
    "||": lambda a, b: pl.concat_str([a, b]),
    "starts_with": lambda a, b: a.str.starts_with(b),
}

_TYPED: dict[str, Callable[[Call, list[pl.Expr], list[SqlType]], pl.Expr]] = {
    **dict.fromkeys(("+", "-", "*", "/", "%"), _arithmetic),
    "in": _in,
    "like": _like,
    "round": _round,
    "floor": _floor_or_ceil,
    "ceil": _floor_or_ceil,
    "neg": _neg,
    "abs": _abs,
    "sign": _sign,
    "power": _power,
    "greatest": _greatest,
    "least": _greatest,
    "substring": _substring,
    "replace": _replace,
    "position": _position,
    "extract": _extract,
    "date_trunc": _date_trunc,
    "add_months": _add_months,
}

IMPLEMENTED = frozenset(_PLAIN) | frozenset(_TYPED)


def is_true(predicate: Expr) -> pl.Expr:
    """A predicate as a filter: NULL counts as false."""
    compiled = to_polars(predicate)
    return compiled if predicate.type == BOOLEAN else pl.lit(False)
