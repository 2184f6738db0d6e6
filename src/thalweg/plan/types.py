"""SQL types and how they combine.

A type is a small frozen value; the module-level constants are the only spellings of the
types without parameters. Values are carried in Python as bool, int, float, Decimal, str,
date, datetime (naive, UTC) and, for intervals, int microseconds.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from functools import cache

MAX_DECIMAL_PRECISION = 38


class Kind(enum.Enum):
    NULL = "NULL"
    BOOLEAN = "BOOLEAN"
    INTEGER = "INTEGER"
    BIGINT = "BIGINT"
    DOUBLE = "DOUBLE"
    DECIMAL = "DECIMAL"
    VARCHAR = "VARCHAR"
    DATE = "DATE"
    TIMESTAMP = "TIMESTAMP"
    INTERVAL = "INTERVAL"

    # Each is one object. Enum's own takes a call of Python, in the hash of every expression.
    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class SqlType:
    """One SQL type; `scale` is the number of digits behind the point of a DECIMAL."""

    kind: Kind
    scale: int = 0

    def __post_init__(self) -> None:
        if self.kind is not Kind.DECIMAL and self.scale:
            raise ValueError(f"{self.kind.value} has no scale")
        if not 0 <= self.scale <= MAX_DECIMAL_PRECISION:
            raise ValueError(f"a DECIMAL's scale is 0 to {MAX_DECIMAL_PRECISION}, not {self.scale}")

    def __str__(self) -> str:
        if self.kind is Kind.DECIMAL:
            return f"DECIMAL({MAX_DECIMAL_PRECISION},{self.scale})"
        return self.kind.name

    @property
    def is_integer(self) -> bool:
        return self.kind in (Kind.INTEGER, Kind.BIGINT)

    @property
    def is_numeric(self) -> bool:
        return self.is_integer or self.kind in (Kind.DOUBLE, Kind.DECIMAL)

    @property
    def is_temporal(self) -> bool:
        return self.kind in (Kind.DATE, Kind.TIMESTAMP)


NULL = SqlType(Kind.NULL)
BOOLEAN = SqlType(Kind.BOOLEAN)
INTEGER = SqlType(Kind.INTEGER)
BIGINT = SqlType(Kind.BIGINT)
DOUBLE = SqlType(Kind.DOUBLE)
VARCHAR = SqlType(Kind.VARCHAR)
DATE = SqlType(Kind.DATE)
TIMESTAMP = SqlType(Kind.TIMESTAMP)
INTERVAL = SqlType(Kind.INTERVAL)


@cache
def decimal(scale: int) -> SqlType:
    """DECIMAL of the given scale; every DECIMAL has 38 digits, so precision is not tracked."""
    return SqlType(Kind.DECIMAL, scale)


def common_type(left: SqlType, right: SqlType) -> SqlType | None:
    """The type both sides are cast to before they are compared or merged; None if there is none."""
    if left == right or right.kind is Kind.NULL:
        return left
    if left.kind is Kind.NULL:
        return right
    if left.is_numeric and right.is_numeric:
        return _common_numeric(left, right)
    if left.is_temporal and right.is_temporal:
        return TIMESTAMP
    return None


def _common_numeric(left: SqlType, right: SqlType) -> SqlType:
    kinds = {left.kind, right.kind}
    if Kind.DOUBLE in kinds:
        return DOUBLE
    if Kind.DECIMAL in kinds:
        return decimal(max(left.scale, right.scale))
    return BIGINT if Kind.BIGINT in kinds else INTEGER


def can_cast(source: SqlType, target: SqlType) -> bool:
    """Whether CAST is defined; a value that does not fit the target becomes NULL at run time."""
    if source == target or source.kind is Kind.NULL:
        return True
    if Kind.INTERVAL in (source.kind, target.kind):
        return False
    if target.kind is Kind.VARCHAR or source.kind is Kind.VARCHAR:
        return True
    if target.is_numeric and (source.is_numeric or source.kind is Kind.BOOLEAN):
        return True
    if target.kind is Kind.BOOLEAN and source.is_integer:
        return True
    return target.is_temporal and source.is_temporal
