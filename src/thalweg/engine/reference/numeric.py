"""Numbers: what each type can hold, and rounding half away from zero.

A value that its type can't hold is NULL (None), never an error and never a wrapped number.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction

from thalweg.plan.types import MAX_DECIMAL_PRECISION, Kind

INTEGER_LIMIT = 1 << 31
BIGINT_LIMIT = 1 << 63
DECIMAL_LIMIT = 10**MAX_DECIMAL_PRECISION
# Products of two DECIMALs, before they are checked, have up to 76 digits.
_EXACT = Context(prec=2 * MAX_DECIMAL_PRECISION + 2)


def fit_integer(value: int, kind: Kind) -> int | None:
    limit = INTEGER_LIMIT if kind is Kind.INTEGER else BIGINT_LIMIT
    return value if -limit <= value < limit else None


def fit_double(value: float) -> float | None:
    """Finite values only; -0.0 does not exist."""
    return value + 0.0 if math.isfinite(value) else None


def nearest_double(value: Fraction) -> float | None:
    """The DOUBLE nearest to an exact value."""
    try:
        return fit_double(value.numerator / value.denominator)
    except OverflowError:
        return None


def fit_decimal(unscaled: int, scale: int) -> Decimal | None:
    """unscaled · 10^-scale, written with exactly `scale` digits behind the point."""
    if abs(unscaled) >= DECIMAL_LIMIT:
        return None
    return Decimal(unscaled).scaleb(-scale, _EXACT)


def nearest_decimal(value: Fraction, scale: int) -> Decimal | None:
    """The DECIMAL nearest to an exact value."""
    return fit_decimal(round_fraction(value * 10**scale), scale)


def round_fraction(value: Fraction) -> int:
    """The nearest whole number, half away from zero."""
    magnitude = math.floor(abs(value) + Fraction(1, 2))
    return magnitude if value >= 0 else -magnitude


def decimal_value(value: float) -> Fraction:
    """The shortest decimal that reads back as the same DOUBLE: what is printed for it."""
    return Fraction(Decimal(repr(value)))


def round_places(value: Fraction, digits: int) -> Fraction:
    """To so many digits behind the point, or before it if negative."""
    # No number has a digit beyond these bounds (DOUBLE's range is 10^±324).
    power = Fraction(10) ** max(-400, min(digits, 400))
    return round_fraction(value * power) / power
