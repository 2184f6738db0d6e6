"""Coalesced rows are the same relation, with at most as many rows as it has changes."""

from collections import Counter

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from thalweg.engine.shared.frames import FOREVER, E, T, W
from thalweg.engine.shared.kernels.coalesce import coalesced, without_retractions

HIGH = 10
ROWS = st.lists(
    st.tuples(
        st.sampled_from([None, "a", "b"]),
        st.integers(0, HIGH - 1),
        st.integers(1, 2 * HIGH) | st.none(),
        st.sampled_from([-2, -1, 1, 1, 3]),
    ).map(lambda r: (r[0], r[1], FOREVER if r[2] is None else r[1] + r[2], r[3])),
    max_size=15,
)


def frame(rows: list[tuple]) -> pl.DataFrame:
    schema = {"c0": pl.String, T: pl.Int64, E: pl.Int64, W: pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def at(rows: pl.DataFrame, instant: int) -> dict:
    held: Counter = Counter()
    for value, start, end, weight in rows.iter_rows():
        if start <= instant < end:
            held[value] += weight
    return {value: n for value, n in held.items() if n}


@given(ROWS)
def test_the_relation_is_the_same_at_every_instant(rows):
    found = coalesced(frame(rows), HIGH)
    for instant in range(3 * HIGH + 2):
        assert at(found, instant) == at(frame(rows), instant)


@given(ROWS)
def test_no_row_begins_later_and_none_is_empty(rows):
    found = coalesced(frame(rows), HIGH)
    assert found.schema == frame(rows).schema
    assert (found[T] < HIGH).all()
    assert (found[T] < found[E]).all()
    assert found.height <= 2 * len(rows)


def test_a_value_that_changes_at_every_instant_has_a_row_for_each():
    changes = [("a" if t % 2 else "b", t, FOREVER, 1) for t in range(HIGH)]
    changes += [("b" if t % 2 else "a", t, FOREVER, -1) for t in range(1, HIGH)]
    found = without_retractions(frame(changes), HIGH).sort(T)
    assert found.rows() == [
        ("a" if t % 2 else "b", t, t + 1 if t + 1 < HIGH else FOREVER, 1) for t in range(HIGH)
    ]


def test_what_follows_on_is_one_row():
    assert coalesced(frame([("a", 1, 2, 1), ("a", 2, 5, 1)]), HIGH).rows() == [("a", 1, 5, 1)]
