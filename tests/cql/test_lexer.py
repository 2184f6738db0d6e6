import pytest

from thalweg.cql.errors import Mistake
from thalweg.cql.lexer import Kind, tokenize


def spelt(text: str) -> list[tuple[str, str]]:
    return [(token.kind.name, token.text) for token in tokenize(text)[:-1]]


def test_words_numbers_strings_and_symbols() -> None:
    assert spelt("x1 'it''s' \"a\"\"b\" <> <=") == [
        ("WORD", "x1"),
        ("STRING", "'it''s'"),
        ("QUOTED", '"a""b"'),
        ("SYMBOL", "<>"),
        ("SYMBOL", "<="),
    ]


def test_quotes_are_taken_off_values() -> None:
    assert [t.value for t in tokenize("'it''s' \"a\"\"b\" ''")[:-1]] == ["it's", 'a"b', ""]


@pytest.mark.parametrize("number", ["5", "5.", ".5", "1.25", "1e3", "1.5E-7"])
def test_numbers(number: str) -> None:
    assert spelt(number) == [("NUMBER", number)]


def test_a_number_ends_where_a_unit_begins() -> None:
    assert spelt("5min 1e") == [("NUMBER", "5"), ("WORD", "min"), ("NUMBER", "1"), ("WORD", "e")]


def test_keys_are_words_in_capitals_and_symbols() -> None:
    assert [t.key for t in tokenize("Select , 'x' 1")] == ["SELECT", ",", "", "", ""]


def test_offsets_skip_space_and_comments() -> None:
    tokens = tokenize(" a -- b\n/* c\n*/ d")
    assert [(t.text, t.span) for t in tokens] == [("a", (1, 2)), ("d", (16, 17)), ("", (17, 17))]


def test_the_end_is_a_token_even_of_nothing() -> None:
    assert [t.kind for t in tokenize("")] == [Kind.END]


def test_letters_of_all_scripts() -> None:
    assert spelt("größe Δ_1") == [("WORD", "größe"), ("WORD", "Δ_1")]


@pytest.mark.parametrize(
    ("text", "span", "message"),
    [
        ("a 'bc\nd", (2, 5), "never closed"),
        ('a "bc', (2, 5), "never closed"),
        ("a /* b", (2, 4), "never closed"),
        ('a ""', (2, 4), "empty"),
        ("a ~", (2, 3), "'~'"),
        ("a\0", (1, 2), "can't stand here"),
    ],
)
def test_what_is_no_token(text: str, span: tuple[int, int], message: str) -> None:
    with pytest.raises(Mistake, match=message) as caught:
        tokenize(text)
    assert caught.value.span == span
