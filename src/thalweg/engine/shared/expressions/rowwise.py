"""Functions that are computed value by value, because columns can't do them exactly.

Text to numbers and back, DECIMAL, and the functions of text that need code points: rare in hot
paths, and here exactness goes before speed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from functools import lru_cache
from typing import Any

import polars as pl

_CONTEXT = Context(prec=80)
_WHOLE = re.compile(r"[+-]?[0-9]+")
_FIXED = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)")
_FLOAT = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_MOMENT = re.compile(
    _DATE.pattern
    + r"(?:[ T]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,6}))?"
    + r"(?:Z|([+-](?:[01][0-9]|2[0-3]))(?::?([0-5][0-9]))?)?)?"
)
TRUE_WORDS = frozenset(("true", "t", "yes", "y", "1"))
FALSE_WORDS = frozenset(("false", "f", "no", "n", "0"))


def by_row(function: Callable[..., Any], result: pl.DataType, *columns: pl.Expr) -> pl.Expr:
    """Apply a function to each row's values; NULL as soon as one of them is NULL."""

    def rows(series: Sequence[pl.Series]) -> pl.Series:
        return row_by_row(function, result, series)

    return pl.map_batches(list(columns), rows, return_dtype=result)


def row_by_row(
    function: Callable[..., Any], result: pl.DataType, series: Sequence[pl.Series]
) -> pl.Series:
    """The same over columns that are there; a constant is a column of one row."""
    height = min(len(s) for s in series) and max(len(s) for s in series)
    same = [s.head(height) if len(s) >= height else s.new_from_index(0, height) for s in series]
    found = [
        None if None in values else function(*values)
        for values in zip(*(s.to_list() for s in same), strict=True)
    ]
    return pl.Series(found, dtype=result)


def rescaled(value: Decimal, scale: int) -> Decimal | None:
    """With `scale` places, rounded half away from zero; None above 38 digits."""
    try:
        rounded = value.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, _CONTEXT)
    except InvalidOperation:
        return None
    return rounded if len(rounded.as_tuple().digits) <= 38 else None


def rounded(value: Decimal, places: int) -> Decimal:
    if places >= -value.as_tuple().exponent:  # type: ignore[operator]
        return value
    if value.adjusted() < -places - 1:
        return Decimal(0)
    return value.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP, _CONTEXT)


def bounded(value: int, bits: int) -> int | None:
    return value if -(1 << (bits - 1)) <= value < 1 << (bits - 1) else None


def round_double(value: float, places: int) -> float:
    return float(rounded(Decimal(repr(value)), places)) + 0.0


def round_whole(value: int, places: int) -> int | None:
    if places >= 0:
        return value
    return bounded(int(rounded(Decimal(value), places)), 64)


def round_decimal(value: Decimal, places: int) -> Decimal | None:
    scale = -int(value.as_tuple().exponent)
    return rescaled(rounded(value, places), scale)


def decimal_remainder(dividend: Decimal, divisor: Decimal) -> Decimal | None:
    """Both have the same places; NULL where the divisor is zero."""
    if not divisor:
        return None
    scale = -int(dividend.as_tuple().exponent)
    left, right = _unscaled(dividend), _unscaled(divisor)
    rest = abs(left) % abs(right)
    return _scaled(-rest if left < 0 else rest, scale)


def decimal_floor(value: Decimal) -> Decimal | None:
    scale = -int(value.as_tuple().exponent)
    return _scaled(_unscaled(value) // 10**scale * 10**scale, scale)


def decimal_ceil(value: Decimal) -> Decimal | None:
    scale = -int(value.as_tuple().exponent)
    return _scaled(-(-_unscaled(value) // 10**scale) * 10**scale, scale)


def decimal_sign(value: Decimal) -> Decimal | None:
    scale = -int(value.as_tuple().exponent)
    return _scaled(((value > 0) - (value < 0)) * 10**scale, scale)


def _unscaled(value: Decimal) -> int:
    scale = -int(value.as_tuple().exponent)
    return int(value.scaleb(scale, _CONTEXT))


def _scaled(unscaled: int, scale: int) -> Decimal | None:
    """None above 38 digits."""
    return Decimal(unscaled).scaleb(-scale, _CONTEXT) if abs(unscaled) < 10**38 else None


def power(base: float, exponent: float) -> float | None:
    try:
        return math.pow(base, exponent) + 0.0
    except (ValueError, OverflowError):
        return None


def whole_of_decimal(value: Decimal, bits: int) -> int | None:
    return bounded(int(value.quantize(Decimal(1), ROUND_HALF_UP, _CONTEXT)), bits)


def whole_of_text(text: str, bits: int) -> int | None:
    text = text.strip(" ")
    # By way of Decimal, since int() refuses very long texts.
    return bounded(int(Decimal(text)), bits) if _WHOLE.fullmatch(text) else None


def decimal_of_text(text: str, scale: int) -> Decimal | None:
    text = text.strip(" ")
    return rescaled(Decimal(text), scale) if _FIXED.fullmatch(text) else None


def double_of_text(text: str) -> float | None:
    text = text.strip(" ")
    if not _FLOAT.fullmatch(text):
        return None
    value = float(text) + 0.0
    return value if abs(value) != float("inf") else None


def boolean_of_text(text: str) -> bool | None:
    word = text.strip(" ").lower()
    return True if word in TRUE_WORDS else False if word in FALSE_WORDS else None


def date_of_text(text: str) -> date | None:
    match = _DATE.fullmatch(text.strip(" "))
    if not match:
        return None
    try:
        return date(*map(int, match.groups()))
    except ValueError:
        return None


def moment_of_text(text: str) -> datetime | None:
    match = _MOMENT.fullmatch(text.strip(" "))
    if not match:
        return None
    year, month, day, hour, minute, second, fraction, hours, minutes = match.groups()
    try:
        moment = datetime(
            int(year),
            int(month),
            int(day),
            int(hour or 0),
            int(minute or 0),
            int(second or 0),
            int((fraction or "").ljust(6, "0")),
        )
        if hours is None:
            return moment
        ahead = timedelta(hours=int(hours[1:]), minutes=int(minutes or 0))
        return moment + ahead if hours[0] == "-" else moment - ahead
    except (ValueError, OverflowError):
        return None


def text_of_moment(moment: datetime) -> str:
    text = moment.isoformat(sep=" ")
    return text.rstrip("0") if "." in text else text


def add_months(moment: datetime, months: int) -> datetime | None:
    """The same day of another month, or that month's last day."""
    year, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    if not 1 <= year <= 9999:
        return None
    first = date(year, month + 1, 1)
    last = 31 if month == 11 else (date(year, month + 2, 1) - first) // timedelta(days=1)
    return moment.replace(year=year, month=month + 1, day=min(moment.day, last))


def like_regex(pattern: str) -> str:
    """A LIKE pattern (% any text, _ any character, \\ escapes) as a regular expression."""
    parts = []
    characters = iter(pattern)
    for c in characters:
        if c == "%":
            parts.append(".*")
        elif c == "_":
            parts.append(".")
        else:
            parts.append(re.escape(next(characters, "\\") if c == "\\" else c))
    return "(?s)^" + "".join(parts) + "$"


def words_of(text: str) -> set[str]:
    return set(text.split(",")) - {""}


def has_any(text: str, words: str) -> bool:
    return not words_of(text).isdisjoint(words_of(words))


def like(text: str, pattern: str) -> bool:
    """By parts between %: the first at the beginning, the last at the end, the others as early as
    they fit. A regular expression would try all ways to place them."""
    first, *others = _parts(pattern)
    if not others:
        return len(first) == len(text) and _fits(first, text, 0)
    *middle, last = others
    begin, end = len(first), len(text) - len(last)
    if begin > end or not _fits(first, text, 0) or not _fits(last, text, end):
        return False
    for part in middle:
        found = _find(part, text, begin, end)
        if found is None:
            return False
        begin = found + len(part)
    return True


Part = list[str | None]  # characters; None is any one of them


@lru_cache(maxsize=256)
def _parts(pattern: str) -> list[Part]:
    parts: list[Part] = [[]]
    characters = iter(pattern)
    for c in characters:
        if c == "%":
            parts.append([])
        else:
            parts[-1].append(None if c == "_" else next(characters, c) if c == "\\" else c)
    return parts


def _find(part: Part, text: str, begin: int, end: int) -> int | None:
    if None not in part:
        found = text.find("".join(c for c in part if c), begin, end)
        return found if found >= 0 else None
    return next((i for i in range(begin, end - len(part) + 1) if _fits(part, text, i)), None)


def _fits(part: Part, text: str, at: int) -> bool:
    return all(c is None or c == text[at + i] for i, c in enumerate(part))
