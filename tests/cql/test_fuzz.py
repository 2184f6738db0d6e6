"""Whatever the text, it compiles or gets a CqlError with a place inside it."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cql.casefiles import load

from thalweg.cql import CqlError, compile_script
from thalweg.cql.errors import Mistake
from thalweg.cql.lexer import RESERVED, tokenize
from thalweg.cql.parser.statements import DEFINABLE
from thalweg.cql.parser.types import TYPES
from thalweg.plan.catalog import Catalog
from thalweg.plan.functions import FUNCTIONS

HERE = Path(__file__).parent
SYMBOLS = list("+-*/%=<>(),.;[]{}") + ["<>", "<=", ">=", "!=", "||"]
NAMES = """
    sum count avg min max if concat strpos year second seconds day ms INTERVAL TIMESTAMP RESOLUTION
    LATENESS IDLE RETAIN WIDE OPTIONS RANGE ROWS UNBOUNDED NOW PARTITION SLIDE X Y T OpenAuction
    Person Busy Sold Cheap A B C size i l f m s d t b itemID new
"""
WORDS = [
    *sorted(RESERVED),
    *DEFINABLE,
    *TYPES,
    *(name for name in FUNCTIONS if name.isidentifier()),
    *NAMES.split(),
]
CONSTANTS = ["0", "1", "-3", "2.5", "1e3", "1e999", "9" * 40, "'a'", "''", "'2024-02-29'", '"A"']
TEXTS = [
    case.text
    for folder in ("golden", "errors")
    for path in sorted((HERE / folder).glob("*.txt"))
    for case in load(path)
]


def _spelt_tokens(text: str) -> list[str]:
    try:
        return [token.text for token in tokenize(text)[:-1]]
    except Mistake:
        return []


SENTENCES = [tokens for text in TEXTS if 0 < len(tokens := _spelt_tokens(text)) < 100]


def _compile(text: str, catalog: Catalog) -> None:
    try:
        compile_script(text, catalog)
    except CqlError as caught:
        error = caught
    else:
        return
    lines = text.split("\n")
    for d in error.diagnostics:
        assert d.message
        assert 1 <= d.line <= len(lines)
        assert 1 <= d.column <= len(lines[d.line - 1]) + 1
    assert str(error)


@given(st.text(max_size=60))
def test_any_text(catalog: Catalog, text: str) -> None:
    _compile(text, catalog)


@given(st.lists(st.sampled_from(WORDS + SYMBOLS + CONSTANTS), max_size=40))
def test_any_row_of_tokens(catalog: Catalog, tokens: list[str]) -> None:
    _compile(" ".join(tokens), catalog)


@st.composite
def mangled_sentences(draw: st.DrawFn) -> str:
    """A text of the case files with some tokens dropped, doubled or replaced by others."""
    tokens = list(draw(st.sampled_from(SENTENCES)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(tokens) - 1))
        length = draw(st.integers(0, 3))
        other = draw(st.sampled_from(SENTENCES))
        start = draw(st.integers(0, len(other) - 1))
        piece = draw(
            st.one_of(
                st.just(other[start : start + draw(st.integers(0, 12))]),
                st.lists(st.sampled_from(WORDS + SYMBOLS + CONSTANTS), max_size=2),
            )
        )
        tokens[at : at + length] = piece
        if not tokens:
            break
    return " ".join(tokens)


@given(mangled_sentences())
def test_sentences_with_mistakes(catalog: Catalog, text: str) -> None:
    _compile(text, catalog)


def test_sentences_are_found() -> None:
    assert len(SENTENCES) > 200


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "(" * 5000,
        "SELECT A FROM " + "(" * 5000,
        "SELECT A FROM X WHERE " + "NOT " * 5000 + "b",
        "ISTREAM " * 5000,
        "SELECT " + "- " * 5000 + "A FROM X",
        "SELECT " + "A + " * 5000 + "A FROM X",
        "SELECT A FROM X WHERE " + "A = 1 AND " * 5000 + "A = 1",
        "SELECT A FROM X WHERE A" + " IS NULL" * 5000,
        "SELECT A FROM X" + " UNION SELECT A FROM X" * 5000,
        "SELECT X.A FROM X" + " CROSS JOIN X" * 5000,
        "SELECT " + "CASE WHEN " * 5000,
        "WITH a AS (" * 5000,
        " " * 5000 + "~",
        "/* */" * 5000 + "~",
        "'" + "''" * 5000,
        "SELECT " + "(" * 30 + "A" + ("+ A" * 90 + ")") * 30 + " AS n FROM X",
    ],
    ids=lambda text: text[:30],
)
def test_long_and_deep_texts_end_in_good_time(catalog: Catalog, text: str) -> None:
    _compile(text, catalog)
