"""The value of each scalar function, as docs/values.md has it."""

from datetime import date, datetime
from decimal import Decimal

import pytest

from thalweg.engine.reference.expressions import evaluate
from thalweg.engine.reference.scalars import IMPLEMENTATIONS
from thalweg.plan.expr import Lit
from thalweg.plan.functions import FUNCTIONS, call, case
from thalweg.plan.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTERVAL,
    NULL,
    TIMESTAMP,
    VARCHAR,
    decimal,
)

MAX, MIN = 2**63 - 1, -(2**63)
HOUR = 3_600_000_000


def lit(value):
    match value:
        case None:
            return Lit(None, NULL)
        case bool():
            return Lit(value, BOOLEAN)
        case int():
            return Lit(value, BIGINT)
        case float():
            return Lit(value, DOUBLE)
        case Decimal():
            return Lit(value, decimal(-value.as_tuple().exponent))
        case str():
            return Lit(value, VARCHAR)
        case datetime():
            return Lit(value, TIMESTAMP)
        case date():
            return Lit(value, DATE)
    return value  # already an expression


def interval(microseconds):
    return Lit(microseconds, INTERVAL)


def value_of(function, *args):
    return evaluate(call(function, *(lit(a) for a in args)), ())


def test_every_function_of_the_plan_is_implemented_and_no_other():
    assert set(IMPLEMENTATIONS) == set(FUNCTIONS)


@pytest.mark.parametrize("name", sorted(n for n, f in FUNCTIONS.items() if f.strict))
def test_strict_functions_are_null_as_soon_as_one_argument_is(name):
    examples = {
        "not": [True],
        "round": [1.5, 1],
        "substring": ["abc", 1, 2],
        "replace": ["abc", "b", "x"],
        "extract": ["year", datetime(2024, 1, 1)],
        "date_trunc": ["year", datetime(2024, 1, 1)],
        "add_months": [datetime(2024, 1, 1), 1],
        **dict.fromkeys(["like", "position", "starts_with", "has_any", "||"], ("a", "b")),
        **dict.fromkeys(["upper", "lower", "length", "trim", "ltrim", "rtrim"], ("a",)),
        **dict.fromkeys(["neg", "abs", "sign", "floor", "ceil", "sqrt", "exp", "ln"], (1.0,)),
    }
    args = examples.get(name, [1.0, 2.0])
    assert value_of(name, *args) is not None
    for i in range(len(args)):
        with_null = [None if i == j else a for j, a in enumerate(args)]
        assert value_of(name, *with_null) is None


@pytest.mark.parametrize(
    ("left", "op", "right", "value"),
    [
        (7, "/", 2, 3),
        (-7, "/", 2, -3),
        (7, "/", -2, -3),
        (7, "%", -2, 1),
        (-7, "%", 2, -1),
        (7, "/", 0, None),
        (7, "%", 0, None),
        (MIN, "/", -1, None),
        (MIN, "%", -1, 0),
        (MAX, "+", 1, None),
        (MIN, "-", 1, None),
        (MAX, "*", 2, None),
        (MAX, "+", -1, MAX - 1),
        (7.5, "/", 2, 3.75),
        (1.0, "/", 0.0, None),
        (0.0, "/", 0.0, None),
        (-7.5, "%", 2.0, -1.5),
        (1e308, "*", 10.0, None),
        (Decimal("0.1"), "+", Decimal("0.20"), Decimal("0.30")),
        (Decimal("1.5"), "*", Decimal("1.5"), Decimal("2.25")),
        (Decimal("7.5"), "%", Decimal("-2"), Decimal("1.5")),
        (Decimal("-7.5"), "%", 2, Decimal("-1.5")),
        (Decimal("1"), "/", Decimal("4"), 0.25),
        (Decimal("9" * 38), "+", Decimal("1"), None),
        (Decimal("9" * 38), "-", Decimal("1"), Decimal("9" * 37 + "8")),
        (date(2024, 2, 28), "+", 2, date(2024, 3, 1)),
        (date(2024, 3, 1), "-", 2, date(2024, 2, 28)),
        (date(9999, 12, 31), "+", 1, None),
        (datetime(2024, 1, 1), "-", date(2023, 12, 31), 24 * HOUR),
        (datetime(2024, 1, 1), "+", interval(HOUR), datetime(2024, 1, 1, 1)),
        (interval(HOUR), "+", date(2024, 1, 1), datetime(2024, 1, 1, 1)),
        (datetime(2024, 1, 1), "-", interval(HOUR), datetime(2023, 12, 31, 23)),
        (datetime(1, 1, 1), "-", interval(1), None),
        (interval(HOUR), "-", interval(2 * HOUR), -HOUR),
        (interval(HOUR), "*", 3, 3 * HOUR),
        (interval(MAX), "*", 2, None),
    ],
)
def test_arithmetic(left, op, right, value):
    found = value_of(op, left, right)
    assert (found, type(found), str(found)) == (value, type(value), str(value))


def test_minus_zero_does_not_exist():
    for args in [("*", -1.0, 0.0), ("neg", 0.0), ("round", -0.4), ("ceil", -0.5), ("%", -4.0, 2.0)]:
        assert str(value_of(*args)) == "0.0"


@pytest.mark.parametrize(
    ("function", "args", "value"),
    [
        ("neg", [MIN], None),
        ("abs", [MIN], None),
        ("abs", [-2.5], 2.5),
        ("abs", [interval(-5)], 5),
        ("neg", [Decimal("1.50")], Decimal("-1.50")),
        ("sign", [-3], -1),
        ("sign", [-3.5], -1.0),
        ("sign", [Decimal("0.00")], Decimal("0.00")),
        ("floor", [-1.5], -2.0),
        ("ceil", [-1.5], -1.0),
        ("floor", [Decimal("-1.50")], Decimal("-2.00")),
        ("ceil", [Decimal("1.01")], Decimal("2.00")),
        ("floor", [7], 7),
        ("round", [0.5], 1.0),
        ("round", [-0.5], -1.0),
        ("round", [2.5], 3.0),
        ("round", [0.49999999999999994], 0.0),
        ("round", [1.005, 2], 1.01),
        ("round", [1234.5, -2], 1200.0),
        ("round", [1e300, 5], 1e300),
        ("round", [1.5, 1000], 1.5),
        ("round", [1.5, -1000], 0.0),
        ("round", [15, -1], 20),
        ("round", [-15, -1], -20),
        ("round", [15, 3], 15),
        ("round", [MAX, -19], None),
        ("round", [Decimal("2.345"), 2], Decimal("2.350")),
        ("round", [Decimal("-2.5")], Decimal("-3.0")),
        ("sqrt", [-1], None),
        ("sqrt", [4], 2.0),
        ("exp", [1000], None),
        ("exp", [0], 1.0),
        ("ln", [0], None),
        ("ln", [-1], None),
        ("ln", [1], 0.0),
        ("power", [2, 10], 1024.0),
        ("power", [0, 0], 1.0),
        ("power", [0, -1], None),
        ("power", [-8, 0.5], None),
        ("power", [10, 400], None),
    ],
)
def test_functions_of_numbers(function, args, value):
    found = value_of(function, *args)
    assert (found, type(found), str(found)) == (value, type(value), str(value))


@pytest.mark.parametrize(
    ("args", "value"),
    [
        (("and", False, None), False),
        (("and", True, None), None),
        (("and", True, True), True),
        (("or", True, None), True),
        (("or", False, None), None),
        (("or", False, False), False),
        (("not", None), None),
        (("is_null", None), True),
        (("is_not_null", 0), True),
        (("in", 1, 2, 1), True),
        (("in", 1, None, 1), True),
        (("in", 1, 2, None), None),
        (("in", None, 1), None),
        (("in", 1, 2, 3), False),
        (("=", None, None), None),
        (("=", 1, 1.0), True),
        (("<", False, True), True),
        (("<", "Z", "a"), True),
        (("<", "ﬀ", "𝔸"), True),
        (("<", date(2024, 1, 1), datetime(2024, 1, 1, 1)), True),
        (("bucket", 1), 0x9F29CB17A2A49995 >> 57),
        (("bucket", True), 0x9F29CB17A2A49995 >> 57),
        (("bucket", 0.5), 0x48CB5E118059DA42 >> 57),
        (("bucket", "abc"), 0x44BC2CF5AD770999 >> 57),
        (("bucket", date(1970, 1, 1)), 0x34C96ACDCADB1BBB >> 57),
        (("bucket", None), 0x9E3779B185EBCA87 >> 57),
        (("coalesce", None, 2, 3), 2),
        (("coalesce", None, None), None),
        (("nullif", 1, 1), None),
        (("nullif", 1, 2), 1),
        (("nullif", 1, None), 1),
        (("nullif", None, 1), None),
        (("greatest", 1, 3, 2), 3),
        (("least", "b", "a"), "a"),
    ],
)
def test_conditions(args, value):
    assert value_of(*args) is value if isinstance(value, bool) else value_of(*args) == value


@pytest.mark.parametrize(
    ("text", "pattern", "matches"),
    [
        ("abc", "abc", True),
        ("abc", "ABC", False),
        ("abc", "a%", True),
        ("abc", "%b%", True),
        ("abc", "a_c", True),
        ("abc", "ab", False),
        ("", "%", True),
        ("", "_", False),
        ("a\nb", "a_b", True),
        ("a.c", "a.c", True),
        ("abc", "a.c", False),
        ("100%", "100\\%", True),
        ("100x", "100\\%", False),
        ("a_", "a\\_", True),
        ("a\\b", "a\\\\b", True),
        ("a\\", "a\\", True),
        ("é", "_", True),
    ],
)
def test_like(text, pattern, matches):
    assert value_of("like", text, pattern) is matches


@pytest.mark.parametrize(
    ("args", "value"),
    [
        (("upper", "straße"), "STRASSE"),
        (("lower", "ÀB"), "àb"),
        (("length", "añ𝔸"), 3),
        (("trim", "  a b\t "), "a b\t"),
        (("ltrim", " a "), "a "),
        (("rtrim", " a "), " a"),
        (("substring", "abcdef", 2), "bcdef"),
        (("substring", "abcdef", 2, 3), "bcd"),
        (("substring", "abcdef", 0, 3), "ab"),
        (("substring", "abcdef", -5), "abcdef"),
        (("substring", "abcdef", -5, 3), ""),
        (("substring", "abcdef", 7), ""),
        (("substring", "abcdef", 5, 100), "ef"),
        (("substring", "abcdef", 1, 0), ""),
        (("substring", "abcdef", 1, -1), None),
        (("replace", "aXbX", "X", "--"), "a--b--"),
        (("replace", "aaa", "aa", "b"), "ba"),
        (("replace", "abc", "", "x"), "abc"),
        (("position", "c", "abc"), 3),
        (("position", "x", "abc"), 0),
        (("position", "", "abc"), 1),
        (("starts_with", "abc", "ab"), True),
        (("starts_with", "abc", ""), True),
        (("has_any", "3,17", "17,4"), True),
        (("has_any", "3,17", "7,1,31"), False),
        (("has_any", "a,b", ",,"), False),
        (("has_any", ",", ",,"), False),
        (("has_any", " a,b", "a"), False),
        (("||", "a", ""), "a"),
    ],
)
def test_text(args, value):
    assert value_of(*args) == value


MOMENT = datetime(2024, 2, 29, 13, 14, 15, 999999)  # a Thursday


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("YEAR", 2024),
        ("month", 2),
        ("day", 29),
        ("hour", 13),
        ("minute", 14),
        ("second", 15),
        ("dow", 4),
        ("doy", 60),
        ("epoch", 1709212455),
    ],
)
def test_extract(part, value):
    assert value_of("extract", part, MOMENT) == value


def test_extract_at_the_edges():
    assert value_of("extract", "dow", date(2024, 3, 3)) == 0  # a Sunday
    assert value_of("extract", "epoch", datetime(1969, 12, 31, 23, 59, 59, 500000)) == -1
    assert value_of("extract", "minute", interval(-90_000_000)) == -1
    assert value_of("extract", "day", interval(47 * HOUR)) == 1
    assert value_of("extract", "millisecond", interval(1_500_000)) == 1500


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("year", datetime(2024, 1, 1)),
        ("month", datetime(2024, 2, 1)),
        ("week", datetime(2024, 2, 26)),
        ("day", datetime(2024, 2, 29)),
        ("hour", datetime(2024, 2, 29, 13)),
        ("minute", datetime(2024, 2, 29, 13, 14)),
        ("second", datetime(2024, 2, 29, 13, 14, 15)),
    ],
)
def test_date_trunc(part, value):
    assert value_of("date_trunc", part, MOMENT) == value


@pytest.mark.parametrize(
    ("months", "value"),
    [
        (1, datetime(2024, 3, 29, 13, 14, 15, 999999)),
        (-12, datetime(2023, 2, 28, 13, 14, 15, 999999)),
        (12 * 8000, None),
        (-12 * 2024, None),
    ],
)
def test_add_months(months, value):
    assert value_of("add_months", MOMENT, months) == value


def test_case_takes_the_first_branch_that_is_true():
    branches = [(lit(None), lit(1)), (lit(False), lit(2)), (lit(True), lit(3)), (lit(True), lit(4))]
    assert evaluate(case(branches), ()) == 3
    assert evaluate(case(branches[:2]), ()) is None
    assert evaluate(case(branches[:2], lit(9.5)), ()) == 9.5
