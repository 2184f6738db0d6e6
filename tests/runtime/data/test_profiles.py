"""What several want of a stream, as few conditions."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from thalweg.cql import compile_script
from thalweg.plan.wanted_rows import MOST_ALTERNATIVES
from thalweg.runtime.data.profiles import covers, merged

TEXT = "CREATE STREAM S (k BIGINT, x DOUBLE, s VARCHAR, t BIGINT) TIMESTAMP BY t"
(STREAM,) = compile_script(TEXT).catalog.streams()


def test_ranges_that_overlap_or_follow_each_other_become_one() -> None:
    assert merged(STREAM, ("k >= 0 AND k < 10",), ("k >= 5 AND k < 20",)) == (
        "(k >= 0) AND (k <= 19)",
    )
    assert merged(STREAM, ("k < 10",), ("k >= 10 AND k < 12",)) == ("k <= 11",)
    assert merged(STREAM, ("k = 3",), ("k = 4",)) == ("(k >= 3) AND (k <= 4)",)


def test_what_lies_apart_stays_apart() -> None:
    found = merged(STREAM, ("k < 10",), ("k > 20",))
    assert found is not None
    assert len(found) == 2
    found = merged(STREAM, ("x < 1.0",), ("x > 1.0",))
    assert found is not None
    assert len(found) == 2
    assert merged(STREAM, ("x < 1.0",), ("x >= 1.0 AND x < 2.0",)) == ("x < 2.0",)


def test_all_values_of_a_column_are_not_all_rows() -> None:
    found = merged(STREAM, ("k < 10",), ("k >= 5",))
    assert found is not None  # where k is NULL, nobody wants the row
    assert len(found) == 2


def test_other_conditions_stand_beside_ranges() -> None:
    found = merged(STREAM, ("k < 10", "s LIKE 'a%'"), ("k < 20",))
    assert found is not None
    assert set(found) == {"k <= 19", "s LIKE 'a%'"}


def test_words_of_a_text_are_wanted_together() -> None:
    """As many have classes of their own among the rows that are due."""
    words = merged(STREAM, ("HAS_ANY(s, '10')",), ("HAS_ANY(s, '9')", "HAS_ANY(s, '7,10')"))
    assert words == ("HAS_ANY(s, '7,9,10')",)
    some = merged(STREAM, ("HAS_ANY(s, '3') AND k < 3",), ("k < 3 AND HAS_ANY(s, '4')",))
    assert some == ("HAS_ANY(s, '3,4') AND (k < 3)",)
    beside = merged(STREAM, words, ("HAS_ANY(s, '3,9') AND k < 3",))
    assert beside is not None
    assert set(beside) == {"HAS_ANY(s, '7,9,10')", "HAS_ANY(s, '3') AND (k < 3)"}
    assert covers(STREAM, words, ("HAS_ANY(s, '9') AND k < 3",))
    assert not covers(STREAM, words, ("HAS_ANY(s, '3,9') AND k < 3",))
    assert merged(STREAM, words, ("k < 3",)) == ("HAS_ANY(s, '7,9,10')", "k <= 2")


def test_where_conditions_are_many_their_words_alone_are_wanted() -> None:
    where: tuple[str, ...] | None = ()
    for n in range(MOST_ALTERNATIVES):
        where = merged(STREAM, where, (f"HAS_ANY(s, '{n}') AND k < {n}",))
    assert where is not None
    assert len(where) == MOST_ALTERNATIVES
    where = merged(STREAM, where, ("HAS_ANY(s, '99') AND x < 1.0",))
    assert where == (f"HAS_ANY(s, '{','.join(map(str, [*range(MOST_ALTERNATIVES), 99]))}')",)
    assert covers(STREAM, where, ("HAS_ANY(s, '5') AND k < 3",))
    assert merged(STREAM, where, ("k < 3",)) == (*where, "k <= 2")


def test_a_profile_covers_what_lies_inside() -> None:
    assert covers(STREAM, ("k >= 0 AND k < 10", "k >= 10 AND k < 20"), ("k > 3 AND k < 15",))
    assert not covers(STREAM, ("k >= 0 AND k < 10",), ("k > 3 AND k < 11",))
    assert covers(STREAM, None, ("k = 1",))
    assert not covers(STREAM, ("k = 1",), None)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 8)), min_size=1, max_size=12))
def test_a_merged_profile_wants_what_either_wants(ranges: list[tuple[int, int]]) -> None:
    where: tuple[str, ...] | None = ()
    for low, width in ranges:
        where = merged(STREAM, where, (f"(k >= {low}) AND (k < {low + width})",))
    assert where is not None
    assert len(where) <= MOST_ALTERNATIVES
    wanted = {k for low, width in ranges for k in range(low, low + width)}
    got = {k for k in range(-2, 50) if any(_holds(w, k) for w in where)}
    assert got == wanted


def _holds(text: str, k: int) -> bool:
    return bool(eval(text.replace("AND", "and").replace(" = ", " == "), {"k": k}))
