"""Units of time: spellings, lengths in microseconds, and amounts such as `1.5 hour`."""

from __future__ import annotations

import re
from decimal import Decimal

from thalweg.cql.errors import Mistake, Span, did_you_mean
from thalweg.cql.syntax import Duration

_SPELLINGS = {
    1: "us usec microsecond microseconds",
    1_000: "ms msec millisecond milliseconds",
    1_000_000: "s sec secs second seconds",
    60_000_000: "min mins minute minutes",
    3_600_000_000: "h hr hrs hour hours",
    86_400_000_000: "d day days",
    604_800_000_000: "w week weeks",
}
MICROSECONDS = {word: us for us, words in _SPELLINGS.items() for word in words.split()}
MONTHS = {"month": 1, "months": 1, "year": 12, "years": 12}
_FULL_NAMES = [w for w in MICROSECONDS if len(w) > 3]
_AMOUNT = re.compile(r"-?([0-9]+(\.[0-9]*)?|\.[0-9]+)")
_MAX_DIGITS = 15  # so that products with a unit are exact


def parse_amount(text: str, span: Span) -> Decimal:
    """A plain decimal number. Raises Mistake."""
    if _AMOUNT.fullmatch(text) is None:
        raise Mistake(f"'{text}' is not a plain number", span)
    if len(text.replace(".", "").lstrip("-0")) > _MAX_DIGITS:
        raise Mistake(f"an amount has at most {_MAX_DIGITS} digits", span)
    return Decimal(text)


def microseconds(duration: Duration) -> int:
    """The length of an amount with a unit. Raises Mistake if it is not a whole number of µs."""
    assert duration.unit is not None
    factor = MICROSECONDS.get(duration.unit.lower())
    if factor is None:
        raise unknown_unit(duration)
    length = duration.amount * factor
    if length != int(length):
        raise Mistake("time is counted in whole microseconds", duration.span)
    return int(length)


def unknown_unit(duration: Duration) -> Mistake:
    unit = duration.unit or ""
    if unit.lower() in MONTHS:
        message = f"a {unit} has no fixed length; use days, hours or another fixed unit"
        return Mistake(message, duration.unit_span)
    hint = did_you_mean(unit, _FULL_NAMES) or "units go from microsecond to week"
    return Mistake(f'"{unit}" is not a unit of time', duration.unit_span, hint)


def in_words(us: int) -> str:
    """A length as people write it, in the largest unit that divides it."""
    names = {1: "µs", 1_000: "ms", 1_000_000: "s", 60_000_000: "min", 3_600_000_000: "h"}
    unit = max(u for u in names if us % u == 0)
    return f"{Decimal(us // unit)} {names[unit]}"
