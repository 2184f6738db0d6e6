"""The reference beside exact arithmetic that is written otherwise: whole numbers, and nothing else.

The judge of all engines is judged here, at the edges of the types.
"""

import math
from datetime import timedelta
from decimal import Decimal
from itertools import product
from typing import Any

import pytest
from tests.conformance.generators.calls import EDGES, TYPES

from thalweg.engine.reference.aggregates import aggregate
from thalweg.engine.reference.expressions import evaluate
from thalweg.plan.aggregates import AggCall
from thalweg.plan.expr import Call, Col
from thalweg.plan.functions import call, cast
from thalweg.plan.types import BIGINT, DATE, DOUBLE, INTEGER, TIMESTAMP, VARCHAR, Kind, SqlType

NUMBERS = [t for t in TYPES if t.is_numeric]
EXACT = [t for t in NUMBERS if t.kind is Kind.DECIMAL or t == BIGINT]


def ratio(value: Any) -> tuple[int, int]:
    """As a fraction of whole numbers."""
    return value.as_integer_ratio()


def fitted(top: int, bottom: int, type_: SqlType) -> Any:
    """top / bottom, which the type holds exactly or, as a DOUBLE, nearly; None if it does not."""
    if type_ == DOUBLE:
        try:
            return top / bottom + 0.0  # of whole numbers: rounded once
        except OverflowError:
            return None
    unscaled, rest = divmod(top * 10**type_.scale, bottom)
    assert not rest, "more places than the type has"
    if type_.kind is Kind.DECIMAL:
        if abs(unscaled) >= 10**38:
            return None
        digits = tuple(map(int, str(abs(unscaled))))
        return Decimal((int(unscaled < 0), digits, -type_.scale))
    return unscaled if -(2**63) <= unscaled < 2**63 else None


def added(a, b, c, d):
    return a * d + c * b, b * d


def multiplied(a, b, c, d):
    return a * c, b * d


def remainder(a, b, c, d):
    """Over one denominator, of the magnitudes, with the dividend's sign."""
    rest = abs(a * d) % abs(c * b)
    return (-rest if a < 0 else rest), b * d


BINARY = {
    "+": added,
    "-": lambda a, b, c, d: added(a, b, -c, d),
    "*": multiplied,
    "%": remainder,
}
UNARY = {
    "neg": lambda a, b: (-a, b),
    "abs": lambda a, b: (abs(a), b),
    "sign": lambda a, b: ((a > 0) - (a < 0), 1),
    "floor": lambda a, b: (a // b, 1),
    "ceil": lambda a, b: (-(-a // b), 1),
    "round": lambda a, b: ((2 * abs(a) + b) // (2 * b) * (1 if a > 0 else -1), 1),
}


@pytest.mark.parametrize(
    ("function", "type_"),
    # A product of more than 38 places is refused when it is bound.
    [(f, t) for f, t in product(BINARY, [*EXACT, DOUBLE]) if f != "*" or t.scale <= 19],
    ids=str,
)
def test_arithmetic_is_exact(function, type_):
    expr = call(function, Col(0, type_), Col(1, type_))
    for a, b in product(EDGES[type_], repeat=2):
        expected = None
        if a is not None and b is not None and not (function == "%" and b == 0):
            expected = fitted(*BINARY[function](*ratio(a), *ratio(b)), expr.type)
        assert evaluate(expr, (a, b)) == expected, (a, b)


@pytest.mark.parametrize("function", UNARY)
@pytest.mark.parametrize("type_", [*EXACT, DOUBLE], ids=str)
def test_functions_of_one_number_are_exact(function, type_):
    expr = call(function, Col(0, type_))
    for a in EDGES[type_]:
        if function == "round" and type_ == DOUBLE and a is not None:
            a = float(round(a * 2) / 2) if abs(a) < 1e9 else a  # no doubt about its decimal value
        expected = None if a is None else fitted(*UNARY[function](*ratio(a)), expr.type)
        assert evaluate(expr, (a,)) == expected, a


def test_division_truncates_or_is_rounded_once():
    whole, double = (Call("/", (Col(0, t), Col(1, t)), t) for t in (BIGINT, DOUBLE))
    for a, b in product(EDGES[BIGINT], repeat=2):
        expected = None
        if a is not None and b:
            magnitude = abs(a) // abs(b)
            expected = fitted(magnitude if (a < 0) == (b < 0) else -magnitude, 1, BIGINT)
        assert evaluate(whole, (a, b)) == expected, (a, b)
    for a, b in product(EDGES[DOUBLE], repeat=2):
        expected = None
        if a is not None and b:
            (p, q), (r, s) = ratio(a), ratio(b)
            expected = fitted(p * s * (1 if r > 0 else -1), q * abs(r), DOUBLE)
        assert evaluate(double, (a, b)) == expected, (a, b)


@pytest.mark.parametrize("type_", NUMBERS, ids=str)
def test_sums_and_means_are_exact(type_):
    known = [v for v in EDGES[type_] if v is not None]
    for values in (*product(known, repeat=2), tuple(known), tuple(known) * 3):
        rows = [(v,) for v in values]
        top, bottom = 0, 1
        for value in values:
            top, bottom = added(top, bottom, *ratio(value))
        total = AggCall("sum", Col(0, type_))
        assert aggregate(total, rows) == fitted(top, bottom, total.type), values
        mean = aggregate(AggCall("avg", Col(0, type_)), rows)
        assert mean == fitted(top, bottom * len(values), DOUBLE), values


def test_the_mean_of_what_is_too_large_to_add_up():
    assert aggregate(AggCall("avg", Col(0, DOUBLE)), [(1e308,), (1e308,)]) == 1e308
    assert aggregate(AggCall("sum", Col(0, DOUBLE)), [(1e308,), (1e308,)]) is None


def test_a_substring_is_the_characters_at_these_places():
    long = 2**63 - 1
    places = (-long - 1, -long + 2, -1, 0, 1, 2, 3, 4, long)
    expr = call("substring", Col(0, VARCHAR), Col(1, BIGINT), Col(2, BIGINT))
    for text, start, length in product(("", "abc", "İ😀\n"), places, places):
        kept = [c for i, c in enumerate(text, 1) if start <= i < start + length]
        assert evaluate(expr, (text, start, length)) == (None if length < 0 else "".join(kept))


def test_days_and_microseconds_stay_within_the_calendar():
    days = call("+", Col(0, DATE), Col(1, BIGINT))
    for day, n in product(EDGES[DATE], EDGES[BIGINT]):
        expected = None
        if day is not None and n is not None and 1 <= day.toordinal() + n <= 3_652_059:
            expected = day.fromordinal(day.toordinal() + n)
        assert evaluate(days, (day, n)) == expected, (day, n)
    apart = call("-", Col(0, TIMESTAMP), Col(1, TIMESTAMP))
    for a, b in product(EDGES[TIMESTAMP], repeat=2):
        expected = None if a is None or b is None else (a - b) // timedelta(microseconds=1)
        assert evaluate(apart, (a, b)) == expected


@pytest.mark.parametrize("function", ["sqrt"])
def test_a_root_is_the_nearest(function):
    expr = call(function, Col(0, DOUBLE))
    for x in EDGES[DOUBLE]:
        root = evaluate(expr, (x,))
        if x is None or x < 0:
            assert root is None
        elif x > 0:
            (p, q), ulp = ratio(x), math.ulp(root)
            below, above = (ratio(root + d) for d in (-ulp, ulp))
            assert below[0] ** 2 * q < p * below[1] ** 2
            assert above[0] ** 2 * q > p * above[1] ** 2


def test_a_number_is_cast_to_the_nearest():
    for source, target in product(NUMBERS, repeat=2):
        expr = cast(Col(0, source), target)
        for value in EDGES[source]:
            found = evaluate(expr, (value,))
            if value is None or found is None:
                continue
            (a, b), (c, d) = ratio(value), ratio(found)
            if target == DOUBLE:
                assert found == fitted(a, b, DOUBLE)
            elif source == DOUBLE:
                continue  # by the decimal value that is printed for it
            else:  # at most half a unit of the last place away
                assert 2 * abs(a * d - c * b) * 10**target.scale <= b * d
                assert target != INTEGER or -(2**31) <= found < 2**31
