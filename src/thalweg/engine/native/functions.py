"""The scalar functions of `thalweg.plan.functions` as Spark expressions, by the same names.

An implementation takes the compiled arguments and the call. What Spark can't do exactly it refuses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from thalweg.engine.native import temporal
from thalweg.engine.native.types import spark_type
from thalweg.engine.native.unsupported import Unsupported
from thalweg.engine.native.values import decimal_text, fit_double, null_if, whole_division, zero
from thalweg.plan.expr import Call, Lit
from thalweg.plan.types import MAX_DECIMAL_PRECISION, Kind, SqlType

Arguments = list[Column]
Implementation = Callable[[Arguments, Call], Column]

MOST_CHARACTERS = (1 << 31) - 1


def _plain(function: Callable[..., Column]) -> Implementation:
    return lambda args, call: function(*args)


def _double(function: Callable[..., Column]) -> Implementation:
    return lambda args, call: fit_double(function(*args))


def _types(call: Call) -> tuple[SqlType, ...]:
    return tuple(a.type for a in call.args)


# --- arithmetic ---------------------------------------------------------------------------------


def _add(args: Arguments, call: Call) -> Column:
    moment = temporal.add(*args, _types(call))
    if moment is not None:
        return moment
    return fit_double(args[0] + args[1]) if _is_double(call) else F.try_add(*args)


def _subtract(args: Arguments, call: Call) -> Column:
    moment = temporal.subtract(*args, _types(call))
    if moment is not None:
        return moment
    return fit_double(args[0] - args[1]) if _is_double(call) else F.try_subtract(*args)


def _multiply(args: Arguments, call: Call) -> Column:
    if call.type.kind is Kind.INTERVAL:
        args = [a.cast("long") for a in args]
    return fit_double(args[0] * args[1]) if _is_double(call) else F.try_multiply(*args)


def _divide(args: Arguments, call: Call) -> Column:
    if _is_double(call):
        return fit_double(args[0] / null_if(args[1], zero(call.type)))
    return whole_division(*args)


def _remainder(args: Arguments, call: Call) -> Column:
    rest = args[0] % null_if(args[1], zero(call.args[1].type))
    return fit_double(rest) if _is_double(call) else rest


def _negate(args: Arguments, call: Call) -> Column:
    if _is_double(call):
        return fit_double(-args[0])
    return F.try_subtract(zero(call.type), args[0])


def _absolute(args: Arguments, call: Call) -> Column:
    (value,) = args
    return F.when(value < zero(call.type), _negate(args, call)).otherwise(value)


def _sign(args: Arguments, call: Call) -> Column:
    (value,), nothing = args, zero(call.type)
    sign = F.when(value > nothing, 1).when(value < nothing, -1).when(value == nothing, 0)
    return sign.try_cast(spark_type(call.type))


def _whole(function: Callable[[Column], Column]) -> Implementation:
    """FLOOR and CEIL; Spark's give BIGINT, which large DOUBLEs (whole anyway) do not fit."""

    def apply(args: Arguments, call: Call) -> Column:
        (value,) = args
        if _is_double(call):
            small = function(F.when(F.abs(value) < 2.0**53, value)).cast("double")
            return F.coalesce(small, value)
        if call.type.kind is Kind.DECIMAL:
            return function(value).try_cast(spark_type(call.type))
        return value

    return apply


def _round(args: Arguments, call: Call) -> Column:
    digits = call.args[1] if len(call.args) > 1 else Lit(0, call.type)
    if not isinstance(digits, Lit):
        raise Unsupported("ROUND to a computed number of digits", "Spark wants a constant there")
    if digits.value is None:
        return F.lit(None).cast(spark_type(call.type))
    places = max(-400, min(int(digits.value), 400))  # no number has a digit beyond these bounds
    if _is_double(call):
        return fit_double(_round_double(args[0], places))
    if places >= call.type.scale:
        return args[0]
    value = args[0].cast("decimal(38,0)") if call.type.is_integer else args[0]
    rounded = F.round(value, places) if places > -MAX_DECIMAL_PRECISION else value * 0
    return rounded.try_cast(spark_type(call.type))


def _round_double(value: Column, places: int) -> Column:
    rounded = F.round(value, places)
    if not -MAX_DECIMAL_PRECISION < places < 0:
        return rounded
    # Whole numbers, of whose last digits Spark's text may be wrong: see `decimal_text`.
    exact = F.round(decimal_text(value).try_cast("decimal(38,0)"), places).cast("double")
    return F.when(F.abs(value).between(1e16, 1e26), exact).otherwise(rounded)


def _is_double(call: Call) -> bool:
    return call.type.kind is Kind.DOUBLE


# --- conditions and choices ---------------------------------------------------------------------


def _extreme(function: Callable[..., Column]) -> Implementation:
    """GREATEST and LEAST: Spark passes over NULLs, we do not."""

    def apply(args: Arguments, call: Call) -> Column:
        if len(args) == 1:
            return args[0]
        known = reduce(lambda a, b: a & b, [a.isNotNull() for a in args])
        return F.when(known, function(*args))

    return apply


def _like(args: Arguments, call: Call) -> Column:
    pattern = call.args[1]
    if not isinstance(pattern, Lit):
        raise Unsupported("LIKE with a computed pattern", "Spark reads escapes in another way")
    if pattern.value is None:
        return F.lit(None).cast("boolean")
    return args[0].rlike(java_regex(str(pattern.value)))


def java_regex(pattern: str) -> str:
    """A LIKE pattern as Java's regular expression for the whole text."""
    wildcards = {"%": ".*", "_": "."}
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    return r"(?s)\A" + "".join(wildcards.get(p) or _quoted(p[-1]) for p in parts) + r"\z"


def _quoted(character: str) -> str:
    return character if character.isalnum() else f"\\x{{{ord(character):x}}}"


# --- text ---------------------------------------------------------------------------------------


def _substring(args: Arguments, call: Call) -> Column:
    """Characters start … start + n - 1 that exist; Spark counts from the end where start < 1."""
    text, start, *count = args
    begin = F.least(F.greatest(start, F.lit(1)), F.lit(MOST_CHARACTERS))
    if not count:
        length = F.lit(MOST_CHARACTERS).cast("long")
    else:
        # Only an end beyond all texts overflows, since the count is not negative.
        end = F.coalesce(F.try_add(start, count[0]), F.lit(MOST_CHARACTERS).cast("long"))
        length = F.least(F.greatest(end, begin) - begin, F.lit(MOST_CHARACTERS))
        length = F.when(count[0] >= 0, length)
    known = F.when(start.isNotNull(), text)
    return F.substring(known, begin.cast("int"), length.cast("int"))


def _extract(args: Arguments, call: Call) -> Column:
    return temporal.extract(call.args[0], args[1], call.args[1].type)


def _date_trunc(args: Arguments, call: Call) -> Column:
    return temporal.date_trunc(call.args[0], args[1])


IMPLEMENTATIONS: Mapping[str, Implementation] = {
    "=": _plain(lambda a, b: a == b),
    "<>": _plain(lambda a, b: a != b),
    "<": _plain(lambda a, b: a < b),
    "<=": _plain(lambda a, b: a <= b),
    ">": _plain(lambda a, b: a > b),
    ">=": _plain(lambda a, b: a >= b),
    "+": _add,
    "-": _subtract,
    "*": _multiply,
    "/": _divide,
    "%": _remainder,
    "and": _plain(lambda *args: reduce(lambda a, b: a & b, args)),
    "or": _plain(lambda *args: reduce(lambda a, b: a | b, args)),
    "not": _plain(lambda a: ~a),
    "is_null": _plain(lambda a: a.isNull()),
    "is_not_null": _plain(lambda a: a.isNotNull()),
    "in": _plain(lambda a, *others: a.isin(*others)),
    "like": _like,
    "coalesce": _plain(F.coalesce),
    "nullif": _plain(lambda a, b: F.when(a == b, F.lit(None)).otherwise(a)),
    "greatest": _extreme(F.greatest),
    "least": _extreme(F.least),
    "neg": _negate,
    "abs": _absolute,
    "sign": _sign,
    "floor": _whole(F.floor),
    "ceil": _whole(F.ceil),
    "round": _round,
    "sqrt": _double(F.sqrt),
    "exp": _double(F.exp),
    "ln": _double(F.ln),
    "power": _double(F.pow),
    "upper": _plain(F.upper),
    "lower": _plain(F.lower),
    "length": _plain(lambda a: F.char_length(a).cast("long")),
    "trim": _plain(F.trim),
    "ltrim": _plain(F.ltrim),
    "rtrim": _plain(F.rtrim),
    "substring": _substring,
    "replace": _plain(F.replace),
    "position": _plain(lambda part, text: F.position(part, text).cast("long")),
    "starts_with": _plain(F.startswith),
    "||": _plain(F.concat),
    "extract": _extract,
    "date_trunc": _date_trunc,
    "add_months": _plain(temporal.add_months),
}
