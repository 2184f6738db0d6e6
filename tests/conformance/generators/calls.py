"""Every well-typed call, cast and CASE over values at the edges of their types.

What a function takes is asked of its own signature, so a function that is new is here by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from itertools import product
from typing import Any

from thalweg.plan.expr import Cast, Col, Expr, Lit
from thalweg.plan.functions import (
    EXTRACT_PARTS,
    FUNCTIONS,
    INTERVAL_PARTS,
    TRUNC_PARTS,
    TypeMismatch,
    call,
    case,
)
from thalweg.plan.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    TIMESTAMP,
    VARCHAR,
    SqlType,
    can_cast,
    decimal,
)

LONGEST = 2**63 - 1
NINES = 10**38 - 1
TINIEST, SMALLEST_NORMAL, LARGEST = 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308

EDGES: dict[SqlType, tuple[Any, ...]] = {
    BOOLEAN: (None, True, False),
    INTEGER: (None, 0, 1, -1, 7, 2**31 - 1, -(2**31)),
    BIGINT: (None, 0, 1, -3, 2**53 + 1, LONGEST, -LONGEST - 1),
    DOUBLE: (
        *(None, 0.0, 0.5, -0.5, -2.5, 1.005, 0.49999999999999994, 2.0**53, 9.3e18, 1e16, 1e-7),
        *(TINIEST, SMALLEST_NORMAL, LARGEST, -LARGEST),
    ),
    VARCHAR: (
        *(None, "", "a", "abc", " 12 ", "1.5", "-7", "1e3", "true", "ß%_", "\\", "a\\%", "%b%"),
        *("2024-02-29", "0001-01-01", "9999-12-31 23:59:59.999999", "9" * 40, "İ😀\n", "1e999"),
    ),
    DATE: (None, date(1, 1, 1), date(1969, 12, 31), date(2024, 2, 29), date(9999, 12, 31)),
    TIMESTAMP: (
        *(None, datetime(1, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999999)),
        *(datetime(2024, 2, 29, 13, 14, 15), datetime(9999, 12, 31, 23, 59, 59, 999999)),
    ),
    INTERVAL: (None, 0, 1, -1, 86_400_000_000, LONGEST, -LONGEST - 1),
}


def _exact(unscaled: int, scale: int) -> Decimal:
    """unscaled · 10^-scale with all its digits, whatever the context's precision."""
    digits = tuple(map(int, str(abs(unscaled))))
    return Decimal((int(unscaled < 0), digits, -scale))


DECIMALS = (decimal(0), decimal(2), decimal(37), decimal(38))
UNSCALED = (0, 1, -1, 25, -50, 149, 15 * 10**36, 5 * 10**37 - 1, NINES, -NINES)
EDGES |= {t: (None, *(_exact(n, t.scale) for n in UNSCALED)) for t in DECIMALS}
TYPES = tuple(EDGES)


@dataclass(frozen=True, slots=True)
class Shape:
    """A form of expression with its places: `build` puts operands of the types into them."""

    name: str
    types: tuple[SqlType, ...]

    def build(self, operands: Sequence[Expr]) -> Expr:
        match self.name.split(" "):
            case ["cast", number]:
                return Cast(operands[0], TYPES[int(number)])
            case ["case"]:
                return case([(operands[0], operands[1])], operands[2])
            case ["when", op]:
                return case([(call(op, *operands), operands[0])], operands[1])
            case [function, part]:
                return call(function, Lit(part, VARCHAR), *operands)
            case [function]:
                return call(function, *operands)
        raise AssertionError(self.name)


FORMS = (*FUNCTIONS, "cast", "case", "when")
_PARTS = {
    "extract": tuple(dict.fromkeys((*EXTRACT_PARTS, *INTERVAL_PARTS))),
    "date_trunc": TRUNC_PARTS,
}


def shapes(form: str) -> Iterator[Shape]:
    """All well-typed expressions of one of the FORMS."""
    if form in FUNCTIONS:
        names = [f"{form} {part}" for part in _PARTS.get(form, ())] or [form]
        for name, count in product(names, (1, 2, 3)):
            yield from (s for types in _typings(count) if _fits(s := Shape(name, types)))
    elif form == "cast":
        for number, target in enumerate(TYPES):
            yield from (Shape(f"cast {number}", (t,)) for t in TYPES if can_cast(t, target))
    elif form == "case":
        yield from (Shape("case", (BOOLEAN, t, t)) for t in TYPES)
    else:
        yield from (Shape(f"when {op}", (t, t)) for op in ("=", "<") for t in TYPES)


def _typings(count: int) -> Iterator[tuple[SqlType, ...]]:
    if count < 3:
        yield from product(TYPES, repeat=count)
        return
    # Three places: all of one type, or what takes a text first.
    yield from ((t,) * 3 for t in TYPES)
    yield from ((VARCHAR, *rest) for rest in product((BIGINT, INTEGER, VARCHAR), repeat=2))


def _fits(shape: Shape) -> bool:
    function, _, part = shape.name.partition(" ")
    if function == "extract" and part not in (
        INTERVAL_PARTS if shape.types[0] == INTERVAL else EXTRACT_PARTS
    ):
        return False
    try:
        shape.build([Col(i, t) for i, t in enumerate(shape.types)])
    except TypeMismatch:
        return False
    return True
