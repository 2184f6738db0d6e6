"""Operators and functions on numbers as Spark expressions, by the arguments' types."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from thalweg.engine.native import temporal
from thalweg.engine.native.types import spark_type
from thalweg.engine.native.values import decimal_text, fit_double, null_if, whole_division, zero
from thalweg.plan.expr import Call, Lit
from thalweg.plan.types import MAX_DECIMAL_PRECISION, Kind, SqlType

Arguments = list[Column]
Implementation = Callable[[Arguments, Call], Column]


def _types(call: Call) -> tuple[SqlType, ...]:
    return tuple(a.type for a in call.args)


def add(args: Arguments, call: Call) -> Column:
    moment = temporal.add(*args, _types(call))
    if moment is not None:
        return moment
    return fit_double(args[0] + args[1]) if _is_double(call) else F.try_add(*args)


def subtract(args: Arguments, call: Call) -> Column:
    moment = temporal.subtract(*args, _types(call))
    if moment is not None:
        return moment
    return fit_double(args[0] - args[1]) if _is_double(call) else F.try_subtract(*args)


def multiply(args: Arguments, call: Call) -> Column:
    if call.type.kind is Kind.INTERVAL:
        args = [a.cast("long") for a in args]
    return fit_double(args[0] * args[1]) if _is_double(call) else F.try_multiply(*args)


def divide(args: Arguments, call: Call) -> Column:
    if _is_double(call):
        return fit_double(args[0] / null_if(args[1], zero(call.type)))
    return whole_division(*args)


def remainder(args: Arguments, call: Call) -> Column:
    rest = args[0] % null_if(args[1], zero(call.args[1].type))
    return fit_double(rest) if _is_double(call) else rest


def negate(args: Arguments, call: Call) -> Column:
    if _is_double(call):
        return fit_double(-args[0])
    return F.try_subtract(zero(call.type), args[0])


def absolute(args: Arguments, call: Call) -> Column:
    (value,) = args
    return F.when(value < zero(call.type), negate(args, call)).otherwise(value)


def sign(args: Arguments, call: Call) -> Column:
    (value,), nothing = args, zero(call.type)
    sign = F.when(value > nothing, 1).when(value < nothing, -1).when(value == nothing, 0)
    return sign.try_cast(spark_type(call.type))


def whole(function: Callable[[Column], Column]) -> Implementation:
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


def round_to(args: Arguments, call: Call) -> Column:
    digits = call.args[1] if len(call.args) > 1 else Lit(0, call.type)
    assert isinstance(digits, Lit), "see limits.py"
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
