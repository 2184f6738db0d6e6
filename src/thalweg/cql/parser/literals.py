"""Constants: numbers, dates, timestamps and intervals."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal

from thalweg.cql.errors import Mistake, Span
from thalweg.cql.syntax import Duration, IntervalLiteral, Literal
from thalweg.cql.units import MONTHS, microseconds, parse_amount
from thalweg.plan.types import (
    BIGINT,
    DATE,
    DOUBLE,
    INTEGER,
    MAX_DECIMAL_PRECISION,
    TIMESTAMP,
    decimal,
)


def number(text: str, span: Span) -> Literal:
    """An integer is INTEGER or BIGINT if it fits, else DECIMAL; 1.5 is DECIMAL; 1e3 is DOUBLE."""
    if "e" in text.lower():
        value = float(text)
        if value in (float("inf"), float("-inf")):
            raise Mistake("this number is too large for DOUBLE", span)
        return Literal(value + 0.0, DOUBLE, span)  # there is no -0.0
    if "." not in text:
        whole = int(text) if len(text) <= MAX_DECIMAL_PRECISION + 1 else 10**MAX_DECIMAL_PRECISION
        if -(1 << 31) <= whole < 1 << 31:
            return Literal(whole, INTEGER, span)
        if -(1 << 63) <= whole < 1 << 63:
            return Literal(whole, BIGINT, span)
    exact = Decimal(text)
    digits = exact.as_tuple()
    scale = max(0, -int(digits.exponent))
    if max(len(digits.digits), scale) > MAX_DECIMAL_PRECISION:
        raise Mistake(f"a number has at most {MAX_DECIMAL_PRECISION} digits", span)
    return Literal(abs(exact) if exact == 0 else exact, decimal(scale), span)


# The forms that CAST reads too (docs/values.md).
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_OFFSET = r"[+-](?:[01][0-9]|2[0-3])(?::?[0-5][0-9])?"
_TIMESTAMP = re.compile(
    rf"({_DATE.pattern}(?:[ T][0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}(?:\.[0-9]{{1,6}})?)?)(Z|{_OFFSET})?"
)


def parse_date(text: str) -> date | None:
    """YYYY-MM-DD"""
    plain = text.strip(" ")
    try:
        return date.fromisoformat(plain) if _DATE.fullmatch(plain) else None
    except ValueError:
        return None


def parse_timestamp(text: str) -> datetime | None:
    """YYYY-MM-DD, or that with HH:MM:SS[.fraction] behind a space or T, and Z or an offset such as
    +02:00: the moment in UTC."""
    found = _TIMESTAMP.fullmatch(text.strip(" "))
    if found is None:
        return None
    clock, offset = found.groups()
    if offset is not None and len(clock) == len("YYYY-MM-DD"):
        return None
    try:
        moment = datetime.fromisoformat(clock)
        if offset in (None, "Z"):
            return moment
        aware = moment.replace(tzinfo=datetime.strptime(f"{offset:0<5}", "%z").tzinfo)
        return aware.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None


def temporal(kind: str, text: str, span: Span) -> Literal:
    """DATE '…' and TIMESTAMP '…'."""
    if kind == "DATE":
        day = parse_date(text)
        if day is None:
            raise Mistake(f"'{text}' is not a date", span, "DATE '2024-02-29'")
        return Literal(day, DATE, span)
    moment = parse_timestamp(text)
    if moment is None:
        hint = "TIMESTAMP '2024-02-29 13:45:00', which is UTC, or with an offset such as +02:00"
        raise Mistake(f"'{text}' is not a timestamp", span, hint)
    return Literal(moment, TIMESTAMP, span)


def interval(
    amount: str, amount_span: Span, unit: str, unit_span: Span, span: Span
) -> IntervalLiteral:
    """INTERVAL 'n' UNIT"""
    count = parse_amount(amount.strip(), amount_span)
    months = MONTHS.get(unit.lower())
    if months is not None:
        if count * months != int(count * months):
            raise Mistake("months are counted in whole numbers", amount_span)
        return IntervalLiteral(0, int(count * months), span)
    length = microseconds(Duration(count, unit, amount_span, unit_span))
    if abs(length) >= 1 << 63:
        raise Mistake("this interval is too long", span)
    return IntervalLiteral(length, 0, span)
