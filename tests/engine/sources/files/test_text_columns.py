"""A column is converted only if the landing would read each of its texts the same way."""

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from thalweg.engine.shared.expressions.casts import cast
from thalweg.engine.sources.files.text_columns import typed_columns
from thalweg.plan.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    TIMESTAMP,
    VARCHAR,
    SqlType,
    decimal,
)

TYPES = [BIGINT, INTEGER, DOUBLE, decimal(2), decimal(0), DATE, TIMESTAMP, BOOLEAN, VARCHAR]

numbers = st.from_regex(r"\A ?[+-]?[0-9]{0,20}(\.[0-9]{0,4})?(e[+-]?[0-9]{1,3})? ?\Z")
dates = st.from_regex(
    r"\A[0-2][0-9]{3}-[01]?[0-9]-[0-3][0-9]"
    r"([ T][0-2][0-9]:[0-5][0-9]:[0-6][0-9](\.[0-9]{0,7})?(Z|[+-][0-2][0-9]:?[0-6][0-9])?)?\Z"
)
words = st.sampled_from(["", "nan", "inf", "Infinity", "true", "x", "0000-01-01", "1_000", "0x1"])
texts = st.none() | numbers | dates | words | st.text(max_size=5)


def landed(values: list[str | None], sql: SqlType) -> list:
    frame = pl.DataFrame({"x": pl.Series(values, dtype=pl.String)})
    return frame.select(cast(pl.col("x"), VARCHAR, sql)).to_series().to_list()


@pytest.mark.parametrize("sql", TYPES, ids=str)
@given(st.lists(texts, max_size=4))
@example(["9223372036854775808"])
@example(["1e400"])
@example(["2025-01-02 03:04:60"])
@example(["1.005"])
@example(["2024-02-29T01:02:03+02:00", "2024-02-29 01:02:03.25-23:59"])
@example(["2024-02-29T01:02:03+02:00", "2024-02-29 01:02:03Z"])
@example(["2024-02-29T01:02:03+24:00"])
def test_what_is_converted_has_the_landings_values(sql, values):
    frame = pl.DataFrame({"x": pl.Series(values, dtype=pl.String)})
    (found,) = typed_columns(frame, {"x": sql}).get_columns()
    if found.dtype == pl.String:
        assert found.to_list() == values
    else:
        assert found.to_list() == landed(values, sql)
        assert found.null_count() == values.count(None)


@pytest.mark.parametrize(
    ("sql", "plain"),
    [
        (BIGINT, ["1", "-5", "+7", None]),
        (DOUBLE, ["1", "0.5", "1e-3", "-.5"]),
        (decimal(2), ["1.25", "-3", ".5", None]),
        (DATE, ["2025-01-02", None]),
        (TIMESTAMP, ["2025-01-02T03:04:05+02:00", "2025-01-02 03:04:05.5-00:30", None]),
        (
            TIMESTAMP,
            ["2025-01-02 03:04:05", "2025-01-02T03:04:05.123456Z", "1999-12-31 23:59:59.5"],
        ),
    ],
    ids=str,
)
def test_plain_columns_are_converted(sql, plain):
    frame = pl.DataFrame({"x": pl.Series(plain, dtype=pl.String)})
    (found,) = typed_columns(frame, {"x": sql}).get_columns()
    assert found.dtype != pl.String
    assert found.to_list() == landed(plain, sql)
