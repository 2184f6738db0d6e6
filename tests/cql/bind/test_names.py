import pytest

from thalweg.cql.bind.names import Output, label, unique_names
from thalweg.cql.errors import Mistake
from thalweg.plan.expr import TRUE


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("SUM ( X.size )", "sum(X.size)"),
        ("a+b *c", "a + b * c"),
        ("-a - -1", "-a - -1"),
        ("count( * )", "count(*)"),
        ("Count(DISTINCT  a)", "count(distinct a)"),
        ("a IS NOT NULL", "a is not null"),
        ("( a , b ) IN (1,2)", "(a, b) in (1, 2)"),
        ("CASE WHEN a = 'X' THEN 1 END", "case when a = 'X' then 1 end"),
        ("NOT (a)", "not (a)"),
        ('"a b"/* c */', '"a b"'),
    ],
)
def test_labels_are_the_text_evenly_spaced(text: str, name: str) -> None:
    assert label(f"xx {text} yy", (3, 3 + len(text))) == name


def outputs(*columns: tuple[str, str | None, bool]) -> list[Output]:
    return [Output(TRUE, name, (0, 1), qualifier, alias) for name, qualifier, alias in columns]


def test_only_names_that_clash_are_qualified() -> None:
    columns = outputs(("a", "X", False), ("A", "Y", False), ("b", "X", False))
    assert unique_names(columns) == ("X.a", "Y.A", "b")


def test_an_alias_is_kept_and_the_column_gives_way() -> None:
    columns = outputs(("a", "X", False), ("a", None, True))
    assert unique_names(columns) == ("X.a", "a")


def test_what_still_clashes_is_numbered() -> None:
    columns = outputs(("f(a)", None, False), ("f(a)", None, False), ("f(a)_2", None, True))
    assert unique_names(columns) == ("f(a)", "f(a)_3", "f(a)_2")


def test_two_equal_aliases_are_an_error() -> None:
    with pytest.raises(Mistake, match="two result columns"):
        unique_names(outputs(("a", None, True), ("A", None, True)))
