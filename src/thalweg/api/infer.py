"""The CREATE STREAM that rows of Python values call for."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from thalweg.engine.site import WrongUse

_TYPES: tuple[tuple[type, str], ...] = (  # bool is an int and datetime a date: the order matters
    (bool, "BOOLEAN"),
    (int, "BIGINT"),
    (float, "DOUBLE"),
    (str, "VARCHAR"),
    (datetime, "TIMESTAMP"),
    (date, "DATE"),
)


def create_stream(name: str, row: Any, timestamp: str, clauses: str = "") -> str:
    """A statement whose columns have the types of one row's values."""
    if not isinstance(row, Mapping):
        raise WrongUse(f"{name} does not exist yet, and can only be made from rows with names")
    if timestamp not in row:
        raise WrongUse(f"rows of {name} have no {timestamp}; they have {', '.join(map(str, row))}")
    columns = ", ".join(f'"{column}" {_type(name, column, v)}' for column, v in row.items())
    return f'CREATE STREAM "{name}" ({columns}) TIMESTAMP BY "{timestamp}" {clauses}'.rstrip()


def _type(stream: str, column: str, value: Any) -> str:
    if isinstance(value, Decimal):
        exponent = value.as_tuple().exponent
        return f"DECIMAL(38, {max(0, -exponent)})" if isinstance(exponent, int) else "DECIMAL"
    for kind, sql in _TYPES:
        if isinstance(value, kind):
            return sql
    raise WrongUse(
        f"the first row's {column} is {value!r}, which says no type: CREATE STREAM {stream} first"
    )
