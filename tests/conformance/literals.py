"""Values as the case files write them: 1, 'text', NULL, true, 2024-02-29, 1e16."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from thalweg.engine.arrivals import Row
from thalweg.plan.types import Kind, SqlType

_VALUE = re.compile(r"\s*('(?:[^']|'')*'|[^,']+?)\s*(?:,|$)")


def parse_row(text: str, types: Sequence[SqlType]) -> Row:
    words = _VALUE.findall(text)
    if len(words) != len(types):
        raise ValueError(f"{text!r} has {len(words)} values, not {len(types)}")
    return tuple(parse_value(word, t) for word, t in zip(words, types, strict=True))


def parse_value(word: str, sql_type: SqlType) -> Any:
    if word == "NULL":
        return None
    match sql_type.kind:
        case Kind.BOOLEAN:
            return {"true": True, "false": False}[word]
        case Kind.INTEGER | Kind.BIGINT:
            return int(word)
        case Kind.DOUBLE:
            return float(word)
        case Kind.DECIMAL:
            return Decimal(word)
        case Kind.VARCHAR:
            if not word.startswith("'"):
                raise ValueError(f"text stands in quotes: {word}")
            return word[1:-1].replace("''", "'")
        case Kind.DATE:
            return date.fromisoformat(word)
        case Kind.TIMESTAMP:
            return datetime.fromisoformat(word)
        case _:
            raise ValueError(f"no column has type {sql_type}")
