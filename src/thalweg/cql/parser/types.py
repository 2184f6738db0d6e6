"""Type names: VARCHAR(20), DECIMAL(10, 2), INT, DOUBLE PRECISION, …"""

from __future__ import annotations

from thalweg.cql.errors import Mistake, did_you_mean
from thalweg.cql.lexer import Kind
from thalweg.cql.parser.cursor import Cursor
from thalweg.plan.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    MAX_DECIMAL_PRECISION,
    TIMESTAMP,
    VARCHAR,
    SqlType,
    decimal,
)

TYPES = {
    "BOOLEAN": BOOLEAN,
    "BOOL": BOOLEAN,
    "SMALLINT": INTEGER,
    "INT": INTEGER,
    "INTEGER": INTEGER,
    "BIGINT": BIGINT,
    "LONG": BIGINT,
    "FLOAT": DOUBLE,
    "REAL": DOUBLE,
    "DOUBLE": DOUBLE,
    "CHAR": VARCHAR,
    "VARCHAR": VARCHAR,
    "STRING": VARCHAR,
    "TEXT": VARCHAR,
    "DATE": DATE,
    "TIMESTAMP": TIMESTAMP,
}
DECIMALS = ("DECIMAL", "NUMERIC")


def is_type(key: str) -> bool:
    return key in TYPES or key in DECIMALS


def parse_type(cursor: Cursor) -> SqlType:
    token = cursor.token
    if token.kind is not Kind.WORD or not is_type(token.key):
        hint = did_you_mean(token.text, [*TYPES, *DECIMALS]) if token.text else None
        raise cursor.unexpected("a type", hint=hint)
    cursor.advance()
    if token.key in DECIMALS:
        return _decimal(cursor)
    if token.key in ("VARCHAR", "CHAR") and cursor.accept("("):
        # Lengths are taken and not enforced: text is not padded, cut or refused.
        _count(cursor, 1)
        cursor.expect(")")
    elif token.key == "DOUBLE":
        cursor.accept("PRECISION")
    return TYPES[token.key]


def _decimal(cursor: Cursor) -> SqlType:
    """DECIMAL(p, s); all DECIMALs carry 38 digits, so p is checked and then forgotten."""
    if not cursor.accept("("):
        return decimal(0)
    precision = _count(cursor, 1, MAX_DECIMAL_PRECISION)
    scale = _count(cursor, 0, precision) if cursor.accept(",") else 0
    cursor.expect(")")
    return decimal(scale)


def _count(cursor: Cursor, low: int, high: int | None = None) -> int:
    token = cursor.token
    if token.kind is not Kind.NUMBER or not token.text.isdecimal():
        raise cursor.unexpected("a whole number")
    cursor.advance()
    value = int(token.text) if len(token.text) < 10 else 1 << 31
    if value < low or (high is not None and value > high):
        limit = f"{low} to {high}" if high is not None else f"at least {low}"
        raise Mistake(f"this number must be {limit}", token.span)
    return value
