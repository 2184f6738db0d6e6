from hypothesis import example, given
from hypothesis import strategies as st
from tests.cql.test_fuzz import CONSTANTS, SENTENCES, SYMBOLS

from thalweg.cql.errors import Mistake
from thalweg.cql.lexer import Kind, tokenize
from thalweg.cql.outline import outlined

PIECES = [*SYMBOLS, *CONSTANTS, "a", "e1", "_", "1", ".5", "2.", "1e", "q7", '"', "'", "''", '""']
PIECES += ["--", "/*", "*/", "\n", " ", "٣", "é", "!", "|", "#", "CREATE QUERY ", '"a""b"', "1.e2"]


def test_a_statement_is_its_text_around_name_and_constants() -> None:
    text = "-- c\ncreate query Q1 AS SELECT a2, 'it''s' FROM s [Rows 5] WHERE a > -1.5 ;SELECT 1"
    found = outlined(text, 0)
    assert found is not None
    assert found.name is not None
    assert (found.name.text, text[slice(*found.name.span)]) == ("Q1", "Q1")
    assert found.outline == (True, " AS SELECT a2, ", " FROM s [Rows ", "] WHERE a > -", " ")
    assert [text[start:end] for start, end in found.constants] == ["'it''s'", "5", "1.5"]
    assert text[found.start :].startswith("create")
    assert (text[found.stop], found.is_last) == (";", False)
    last = outlined(text, found.following)
    assert last is not None
    assert (last.outline, last.is_last) == ((False, "SELECT ", ""), True)


def test_statements_with_and_without_a_name_are_never_alike() -> None:
    named, bare = outlined("CREATE QUERY q(SELECT 1", 0), outlined("(SELECT 1", 0)
    assert named is not None
    assert bare is not None
    assert named.outline != bare.outline


def test_what_can_be_no_name_or_never_ends_is_left_to_the_parser() -> None:
    assert outlined("CREATE QUERY select AS SELECT a FROM s", 0) is None
    assert outlined("SELECT 'open", 0) is None
    assert outlined("SELECT /* open", 0) is None


@given(
    st.one_of(
        st.lists(st.sampled_from(PIECES), max_size=25).map("".join),
        st.sampled_from(SENTENCES).map(" ".join),
        st.sampled_from(SENTENCES).map("".join),
    )
)
@example("1e+2.5.e3")
@example("a.5 b5.5c")
@example('"" "a"" \'x')
def test_constants_are_those_of_the_lexer(text: str) -> None:
    try:
        tokens = tokenize(text)
    except Mistake:
        return  # then there is no statement, whatever is found
    position, is_last = 0, False
    constants = []
    while not is_last:
        found = outlined(text, position)
        if found is None:  # a reserved word for a name
            return
        name = [found.name.text] if found.name is not None else []
        rebuilt = "".join(
            gap + text[slice(*place)]
            for gap, place in zip(found.outline[1:], [*found.constants, (0, 0)], strict=True)
        )
        assert text[found.start : found.stop].endswith(rebuilt)
        assert len(name) == found.outline[0]
        constants += [text[start:end] for start, end in found.constants]
        position, is_last = found.following, found.is_last
    assert constants == [t.text for t in tokens if t.kind in (Kind.NUMBER, Kind.STRING)]
