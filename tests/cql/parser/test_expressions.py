from decimal import Decimal

import pytest

from thalweg.cql import parse_script
from thalweg.cql.parser.literals import number, parse_date, parse_timestamp
from thalweg.cql.syntax import (
    Arithmetic,
    ColumnRef,
    Comparison,
    CreateQuery,
    Expr,
    FunctionCall,
    InList,
    IntervalLiteral,
    Literal,
    Logical,
    Negation,
    Not,
    Select,
    SelectItem,
)
from thalweg.plan.types import BIGINT, DOUBLE, INTEGER, VARCHAR, SqlType, decimal

A, B, C = ColumnRef("a"), ColumnRef("b"), ColumnRef("c")


def parsed(text: str) -> Expr:
    (statement,) = parse_script(f"SELECT {text} FROM s")
    assert isinstance(statement, CreateQuery)
    assert isinstance(statement.query, Select)
    (item,) = statement.query.items
    assert isinstance(item, SelectItem)
    return item.expr


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a + b * c", Arithmetic("+", A, Arithmetic("*", B, C))),
        ("a - b - c", Arithmetic("-", Arithmetic("-", A, B), C)),
        ("(a - b) % c", Arithmetic("%", Arithmetic("-", A, B), C)),
        ("- a * b", Arithmetic("*", Negation(A), B)),
        ("a || b || c", Arithmetic("||", Arithmetic("||", A, B), C)),
        ("NOT a = b", Not(Comparison(A, (("=", B),)))),
        ("a OR b AND c", Logical("or", (A, Logical("and", (B, C))))),
        ("a AND b AND c", Logical("and", (A, B, C))),
        ("a = b = c", Comparison(A, (("=", B), ("=", C)))),
        ("a != b", Comparison(A, (("<>", B),))),
        ("(a = b) = c", Comparison(Comparison(A, (("=", B),)), (("=", C),))),
        ("a NOT IN (b, c)", InList(A, (B, C), negated=True)),
        ("f()", FunctionCall("f", ())),
        ("COUNT(*)", FunctionCall("count", (), star=True)),
        ("Sum(DISTINCT a)", FunctionCall("sum", (A,), distinct=True)),
        ("EXTRACT(Hour FROM a)", FunctionCall("extract", (Literal("hour", VARCHAR), A))),
        ("SUBSTRING(a FROM b FOR c)", FunctionCall("substring", (A, B, C))),
        ("POSITION(a IN b)", FunctionCall("position", (A, B))),
        ("INTERVAL '2' HOUR", IntervalLiteral(7_200_000_000)),
        ("INTERVAL -3 months", IntervalLiteral(0, -3)),
        ("interval", ColumnRef("interval")),
        ("date", ColumnRef("date")),
        ('x."y z"', ColumnRef("y z", "x")),
        ('"y z"', ColumnRef("y z", quoted=True)),
    ],
)
def test_trees(text: str, tree: Expr) -> None:
    assert parsed(text) == tree


def test_parts_know_their_place() -> None:
    text = "SELECT a + f(b) FROM s"
    expr = parsed("a + f(b)")
    assert isinstance(expr, Arithmetic)
    assert text[slice(*expr.span)] == "a + f(b)"
    assert text[slice(*expr.right.span)] == "f(b)"


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("0", INTEGER),
        ("2147483647", INTEGER),
        ("2147483648", BIGINT),
        ("-2147483648", INTEGER),
        ("-2147483649", BIGINT),
        ("9223372036854775807", BIGINT),
        ("9223372036854775808", decimal(0)),
        ("-9223372036854775808", BIGINT),
        ("0.10", decimal(2)),
        ("5.", decimal(0)),
        ("1e2", DOUBLE),
    ],
)
def test_numbers_have_the_smallest_type_that_holds_them(text: str, type_: SqlType) -> None:
    literal = number(text, (0, 0))
    assert literal.type == type_
    assert Decimal(str(literal.value)) == Decimal(text)


def test_there_is_no_negative_zero() -> None:
    assert [str(number(t, (0, 0)).value) for t in ("-0", "-0.00", "-0e0")] == ["0", "0.00", "0.0"]


@pytest.mark.parametrize("text", ["2024-2-3", "2024-02-30", "20240203", "2024-02-03 10:00", ""])
def test_texts_that_are_no_dates(text: str) -> None:
    assert parse_date(text) is None
    assert parse_timestamp(text) is None


def test_timestamps_are_utc() -> None:
    assert str(parse_timestamp(" 2024-02-29T23:59:59.5Z ")) == "2024-02-29 23:59:59.500000"
