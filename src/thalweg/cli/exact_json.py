"""JSON whose numbers stay as they were written: a DECIMAL has more digits than a float holds."""

from __future__ import annotations

import json
from decimal import Context, Decimal
from typing import Any

_ALL_DIGITS = Context(prec=1_000)


class Number(str):
    """A number with a point or an exponent, as text."""

    __slots__ = ()


def read(text: str) -> Any:
    return json.loads(text, parse_float=Number)


def read_by_value(text: str) -> Any:
    """Equal numbers are equal texts: `1.50` is `1.5`, and `2.0` is `2`."""
    return json.loads(text, parse_float=_by_value, parse_int=_by_value)


def write(value: Any, between: str = ", ", behind_key: str = ": ") -> str:
    match value:
        case Number():
            return str(value)
        case dict():
            pairs = (
                f"{_text(key)}{behind_key}{write(item, between, behind_key)}"
                for key, item in value.items()
            )
            return f"{{{between.join(pairs)}}}"
        case list():
            return f"[{between.join(write(item, between, behind_key) for item in value)}]"
        case _:
            return _text(value)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _by_value(text: str) -> Number:
    number = Decimal(text)
    if not number:
        return Number("0")
    short = number.normalize(_ALL_DIGITS)
    # Without an exponent, unless that would be a long row of zeros.
    return Number(f"{short:f}" if -40 < short.adjusted() < 40 else str(short))
