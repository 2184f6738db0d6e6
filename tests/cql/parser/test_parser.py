"""`parse_script`: statements with their places, and every statement's first error."""

import pytest

from thalweg.cql import CqlError, parse_script
from thalweg.cql.syntax import CreateQuery, CreateStream, Drop, Select


def test_statements_know_their_place() -> None:
    text = "  SELECT a FROM s ;\nDROP VIEW v"
    first, second = parse_script(text)
    assert isinstance(first, CreateQuery)
    assert text[slice(*first.span)] == "SELECT a FROM s"
    assert second == Drop("VIEW", second.name)
    assert text[slice(*second.name.span)] == "v"


def test_nothing_is_looked_up() -> None:
    (statement,) = parse_script("SELECT nobody.knows FROM this [Now]")
    assert isinstance(statement, CreateQuery)
    assert isinstance(statement.query, Select)


def test_each_statement_reports_its_first_error() -> None:
    with pytest.raises(CqlError) as caught:
        parse_script("SELECT ; SELECT a FROM s; CREATE ; SELECT (a FROM s")
    assert [d.column for d in caught.value.diagnostics] == [8, 34, 46]


def test_an_error_inside_deep_nesting_does_not_count_against_the_next_statement() -> None:
    deep = "SELECT " + "(" * 30 + " FROM s;"
    with pytest.raises(CqlError) as caught:
        parse_script(deep * 3)
    assert {d.message for d in caught.value.diagnostics} == {'expected an expression, found "FROM"'}


def test_clauses_of_create_stream_may_stand_in_any_order() -> None:
    one, other = parse_script(
        "CREATE STREAM s (a INT) TIMESTAMP BY ts LATENESS 1 s FROM 'x';"
        "CREATE STREAM s (a INT) FROM 'x' LATENESS 1 s TIMESTAMP BY ts"
    )
    assert isinstance(one, CreateStream)
    assert one == other


def test_an_option_may_be_named_like_a_keyword() -> None:
    (stream,) = parse_script(
        "CREATE STREAM s (a INT) TIMESTAMP BY ts OPTIONS (limit '5', \"by\" 'x')"
    )
    assert isinstance(stream, CreateStream)
    assert [(name.text, value) for name, value in stream.options] == [("limit", "5"), ("by", "x")]
