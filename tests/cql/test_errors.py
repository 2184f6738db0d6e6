import pytest

from thalweg.cql import compile_script
from thalweg.cql.errors import CqlError, Diagnostic, Mistake, closest, did_you_mean

TEXT = "SELECT a,\n\tbb\nFROM s"


def test_a_mistake_knows_line_column_and_length() -> None:
    at = TEXT.index("bb")
    assert Mistake("no", (at, at + 2)).diagnostic(TEXT) == Diagnostic("no", 2, 2, 2)


def test_a_mistake_at_the_end_points_behind_the_last_character() -> None:
    diagnostic = Mistake("more", (len(TEXT), len(TEXT))).diagnostic(TEXT)
    assert (diagnostic.line, diagnostic.column, diagnostic.length) == (3, 7, 1)
    assert diagnostic.render(TEXT).endswith("  FROM s\n        ^")


def test_rendering_shows_place_line_caret_and_help() -> None:
    diagnostic = Diagnostic("no column", 2, 2, 2, 'did you mean "b"?', "warning")
    assert diagnostic.render(TEXT, "f.cql") == (
        'f.cql:2:2: warning: no column\n  \tbb\n  \t^^\nhelp: did you mean "b"?'
    )


def test_carets_end_with_the_line() -> None:
    assert Diagnostic("long", 1, 8, 99).render(TEXT).endswith("\n         ^^")


def test_carriage_returns_are_not_shown() -> None:
    assert Diagnostic("x", 1, 1).render("ab\r\ncd") == "<cql>:1:1: error: x\n  ab\n  ^"


def test_an_error_prints_all_its_diagnostics() -> None:
    error = CqlError([Diagnostic("one", 1, 1), Diagnostic("two", 3, 1)], TEXT, "f.cql")
    assert str(error).split("\n\n")[1].startswith("f.cql:3:1: error: two")
    assert error.render("x", "other").startswith("other:1:1: error: one\n  x")


def test_a_place_outside_of_the_text_is_still_named() -> None:
    assert CqlError([Diagnostic("one", 9, 1)]).render() == "<cql>:9:1: error: one"


def test_suggestions_ignore_case_and_keep_spelling() -> None:
    assert closest("ITMID", ["itemID", "sellerID"]) == "itemID"
    assert did_you_mean("zzz", ["itemID"]) is None


def test_a_name_as_long_as_a_text_is_not_told_again_and_again() -> None:
    name = "x" * 5_000
    text = f'CREATE STREAM "{name}" (a BIGINT) TIMESTAMP BY ts; DROP QUERY "{name}"'
    with pytest.raises(CqlError) as caught:
        compile_script(text)
    assert all(len(d.message) < 500 and len(d.hint or "") < 500 for d in caught.value.diagnostics)
    assert len(str(caught.value)) < 3_000
