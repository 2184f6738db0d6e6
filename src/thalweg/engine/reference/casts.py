"""CAST: from the value of one type to that of another, NULL where it can't be represented."""

from __future__ import annotations

import re
from datetime import date, datetime, time
from decimal import Decimal
from fractions import Fraction
from typing import Any

from thalweg.engine.reference.numeric import (
    decimal_value,
    fit_double,
    fit_integer,
    nearest_decimal,
    nearest_double,
    round_fraction,
)
from thalweg.engine.reference.temporal import parse_date, parse_timestamp, timestamp_text
from thalweg.plan.types import Kind, SqlType

_WHOLE = re.compile(r"[+-]?[0-9]+")
_POINT = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)")
_FLOAT = re.compile(_POINT.pattern + r"([eE][+-]?[0-9]+)?")
_TRUE, _FALSE = ("true", "t", "yes", "y", "1"), ("false", "f", "no", "n", "0")


def cast_value(value: Any, source: SqlType, target: SqlType) -> Any:
    if value is None or source == target:
        return value
    match target.kind:
        case Kind.INTEGER | Kind.BIGINT:
            whole = _whole(value)
            return None if whole is None else fit_integer(whole, target.kind)
        case Kind.DOUBLE:
            return _double(value)
        case Kind.DECIMAL:
            return _decimal(value, target.scale)
        case Kind.VARCHAR:
            return _text(value)
        case Kind.BOOLEAN:
            return _boolean(value)
        case Kind.DATE:
            return _date(value)
        case Kind.TIMESTAMP:
            return _timestamp(value)
        case _:
            raise ValueError(f"{source} can't be cast to {target}")


def _trim(text: str) -> str:
    return text.strip(" ")


def _whole(value: Any) -> int | None:
    match value:
        case str():
            # By way of Decimal, since int() refuses very long texts.
            return int(Decimal(value)) if _WHOLE.fullmatch(value := _trim(value)) else None
        case float():
            return round_fraction(decimal_value(value))
        case Decimal():
            return round_fraction(Fraction(value))
        case _:
            return int(value)


def _double(value: Any) -> float | None:
    match value:
        case str():
            return fit_double(float(value)) if _FLOAT.fullmatch(value := _trim(value)) else None
        case _:
            return nearest_double(Fraction(value))


def _decimal(value: Any, scale: int) -> Decimal | None:
    match value:
        case float():
            return nearest_decimal(decimal_value(value), scale)
        case str():
            if not _POINT.fullmatch(value := _trim(value)):
                return None
            return nearest_decimal(Fraction(Decimal(value)), scale)
        case _:
            return nearest_decimal(Fraction(value), scale)


def _text(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return repr(value)
        case Decimal():
            return f"{value:f}"
        case datetime():
            return timestamp_text(value)
        case _:
            return str(value)


def _boolean(value: Any) -> bool | None:
    if isinstance(value, str):
        word = _trim(value).lower()
        return True if word in _TRUE else False if word in _FALSE else None
    return bool(value)


def _date(value: Any) -> date | None:
    match value:
        case str():
            return parse_date(_trim(value))
        case datetime():
            return value.date()
        case _:
            raise TypeError(f"{value!r} is not a valid DATE")


def _timestamp(value: Any) -> datetime | None:
    match value:
        case str():
            return parse_timestamp(_trim(value))
        case date():
            return datetime.combine(value, time())
        case _:
            raise TypeError(f"{value!r} is not a valid TIMESTAMP")
