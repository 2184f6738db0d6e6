"""A value comes in exactly, or not at all: every type into every type, at the edges and drawn."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.cql import compile_script
from thalweg.engine.shared.frames import name
from thalweg.engine.shared.ingest.normalise import normalise
from thalweg.engine.sources.rows import frame_of
from thalweg.plan.catalog import StreamDef

NUMERIC = ("INTEGER", "BIGINT", "DOUBLE", "DECIMAL(38, 2)")
WANTED = (*NUMERIC, "VARCHAR", "DATE", "TIMESTAMP", "BOOLEAN")
_EPOCH = datetime(1970, 1, 1)
_EDGES = (0, 1, -1, 2**31 - 1, 2**31, -(2**31) - 1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63))


def stream_of(wanted: str) -> StreamDef:
    script = compile_script(f"CREATE STREAM S (ts BIGINT, v {wanted}) TIMESTAMP BY ts;")
    return script.catalog.streams()[0]


def taken(wanted: str, column: Any) -> list[Any]:
    """What became of each value: itself in the wanted type, or the reason."""
    stream = stream_of(wanted)
    table = (
        pa.table({"ts": pa.array([1] * len(column)), "v": column})
        if isinstance(column, pa.Array | pa.ChunkedArray)
        else [{"ts": 1, "v": v} for v in column]
    )
    done = normalise(stream, frame_of(stream, table))
    place = next(i for i, f in enumerate(stream.fields) if f.name == "v")
    out: dict[int, Any] = dict(done.rejected.iter_rows())
    out |= dict(zip(done.rows["_row"].to_list(), done.rows[name(place)].to_list(), strict=True))
    return [out[i] for i in range(len(column))]


def is_refused(outcome: Any) -> bool:
    return isinstance(outcome, str) and outcome.startswith("v: ")


# --- numbers


def in_type(value: Fraction, wanted: str) -> Any:
    """The exact value in a numeric type, or None."""
    match wanted:
        case "INTEGER" | "BIGINT":
            bits = 31 if wanted == "INTEGER" else 63
            fits = value.denominator == 1 and -(2**bits) <= value < 2**bits
            return int(value) if fits else None
        case "DECIMAL(38, 2)":
            fits = (value * 100).denominator == 1 and abs(value * 100) < 10**38
            return Decimal(int(value * 100)).scaleb(-2) if fits else None
        case _:
            return float(value)


wholes = st.sampled_from(_EDGES) | st.integers(-(2**63), 2**63 - 1)
decimals = st.decimals(allow_nan=False, allow_infinity=False, places=4, max_value=10**30)


@given(st.lists(wholes, min_size=1, max_size=4), st.sampled_from(NUMERIC))
def test_a_whole_number_is_taken_exactly_or_not_at_all(values: list[int], wanted: str) -> None:
    for got in (taken(wanted, pa.array(values, pa.int64())), taken(wanted, values)):
        for value, outcome in zip(values, got, strict=True):
            exact = in_type(Fraction(value), wanted)
            if exact is None or Fraction(exact) != value:
                assert is_refused(outcome)
            else:
                assert outcome == exact


@given(st.lists(decimals, min_size=1, max_size=4), st.sampled_from(NUMERIC))
def test_a_decimal_is_taken_exactly_and_by_double_as_the_nearest(
    values: list[Decimal], wanted: str
) -> None:
    for kind in (pa.decimal128(38, 4), pa.decimal256(60, 4), None):
        given_ = values if kind is None else pa.array(values, kind)
        for value, outcome in zip(values, taken(wanted, given_), strict=True):
            exact = in_type(Fraction(value), wanted)
            if exact is None:
                assert is_refused(outcome)
            else:
                assert outcome == exact


@given(
    st.lists(st.floats() | st.sampled_from([0.1, 2.5, 1e300, -0.0]), min_size=1, max_size=4),
    st.sampled_from(NUMERIC),
)
def test_a_float_is_its_shortest_decimal(values: list[float], wanted: str) -> None:
    for got in (taken(wanted, pa.array(values, pa.float64())), taken(wanted, values)):
        for value, outcome in zip(values, got, strict=True):
            finite = abs(value) < float("inf")
            exact = in_type(Fraction(repr(value)), wanted) if finite else None
            if wanted in ("INTEGER", "BIGINT") and abs(value) >= 2**53:
                exact = None  # several whole numbers are written as this one
            if exact is None:
                assert is_refused(outcome)
            else:
                assert outcome == exact


@pytest.mark.parametrize(
    ("wanted", "text", "value"),
    [
        ("DECIMAL(38, 2)", "12345678901234567890.12", Decimal("12345678901234567890.12")),
        ("DECIMAL(38, 2)", "1.500", Decimal("1.50")),
        ("DECIMAL(38, 2)", "1.505", None),
        ("DECIMAL(38, 2)", "9" * 37, None),
        ("DOUBLE", "9007199254740993", None),
        ("DOUBLE", "9007199254740993.0", 9007199254740992.0),
        ("DOUBLE", "1e400", None),
        ("BIGINT", "9223372036854775808", None),
    ],
)
def test_a_text_is_taken_exactly_or_not_at_all(wanted: str, text: str, value: Any) -> None:
    [outcome] = taken(wanted, [text])
    assert is_refused(outcome) if value is None else outcome == value


@pytest.mark.parametrize(
    "value", [Decimal("1e999999999"), Decimal("-1e-999999999"), 10**5000], ids=["+", "-", "whole"]
)
@pytest.mark.parametrize("wanted", ["BIGINT", "DECIMAL(38, 2)"])
def test_a_number_of_any_size_is_refused_at_once(wanted: str, value: Any) -> None:
    assert is_refused(taken(wanted, [value])[0])


# --- moments

_UNITS = {"s": 10**6, "ms": 10**3, "us": 1}
counts = st.integers(-(2**63) + 1, 2**63 - 1)


@given(st.lists(counts, min_size=1, max_size=4), st.sampled_from(["s", "ms", "us", "ns"]))
def test_a_timestamp_lies_within_the_years_1_to_9999_and_keeps_its_digits(
    values: list[int], unit: str
) -> None:
    for zone in (None, "Europe/Berlin", "no/such/zone"):
        column = pa.array(values, pa.int64()).view(pa.timestamp(unit, zone))
        for value, outcome in zip(values, taken("TIMESTAMP", column), strict=True):
            us = Fraction(value, 1000) if unit == "ns" else Fraction(value * _UNITS[unit])
            try:
                exact = _EPOCH + timedelta(microseconds=int(us)) if us.denominator == 1 else None
            except OverflowError:
                exact = None
            assert is_refused(outcome) if exact is None else outcome == exact


@given(st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=4))
def test_a_date_lies_within_the_years_1_to_9999(values: list[int]) -> None:
    column = pa.array(values, pa.int32()).view(pa.date32())
    for wanted in ("DATE", "TIMESTAMP"):
        for value, outcome in zip(values, taken(wanted, column), strict=True):
            ordinal = date(1970, 1, 1).toordinal() + value
            if not 1 <= ordinal <= date.max.toordinal():
                assert is_refused(outcome)
            else:
                assert str(outcome)[:10] == date.fromordinal(ordinal).isoformat()


def test_a_date_takes_a_timestamp_at_midnight_only() -> None:
    midnight, noon = datetime(2024, 1, 1), datetime(2024, 1, 1, 12)
    for column in ([midnight, noon], pa.array([midnight, noon], pa.timestamp("us"))):
        first, second = taken("DATE", column)
        assert first == date(2024, 1, 1)
        assert is_refused(second)


def test_a_moment_that_leaves_the_calendar_in_utc_is_refused() -> None:
    from datetime import timezone

    early = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5)))
    assert is_refused(taken("TIMESTAMP", [early])[0])
    assert taken("TIMESTAMP", [datetime(2024, 1, 1, tzinfo=UTC)]) == [datetime(2024, 1, 1)]


# --- encodings and other types


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["a", None, "b"]).dictionary_encode(),
        pa.array(["a", None, "b"], pa.large_string()),
        pa.array(["a", None, "b"], pa.string_view()),
        pa.RunEndEncodedArray.from_arrays([1, 2, 3], pa.array(["a", None, "b"])),
        pa.RunEndEncodedArray.from_arrays([1, 2, 3], pa.array(["a", None, "b"], pa.large_string())),
    ],
    ids=lambda c: str(c.type),
)
def test_an_encoding_of_a_type_is_that_type(column: pa.Array) -> None:
    assert taken("VARCHAR", column) == ["a", None, "b"]


def test_columns_of_polars_are_known_by_what_they_hold() -> None:
    stream = stream_of("VARCHAR")
    for kind in (pl.Categorical, pl.Enum(["a", "b"])):
        frame = pl.DataFrame({"ts": [1, 2], "v": pl.Series(["a", "b"], dtype=kind)})
        assert normalise(stream, frame).rows["c1"].to_list() == ["a", "b"]


@pytest.mark.parametrize("wanted", WANTED)
@pytest.mark.parametrize(
    "column",
    [
        pa.array([[1], None]),
        pa.array([{"a": 1}, None]),
        pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())),
        pa.array([b"a", None]),
        pa.array([b"ab", None], pa.binary(2)),
        pa.array([1, None], pa.time32("s")),
        pa.array([1, None], pa.duration("ns")),
        pa.array([pa.MonthDayNano([1, 2, 3]), None]),
        pa.UnionArray.from_sparse(pa.array([0, 0], pa.int8()), [pa.array([1, None])]),
    ],
    ids=lambda c: str(c.type) if isinstance(c, pa.Array) else c,
)
def test_a_type_that_is_none_of_ours_refuses_its_rows(wanted: str, column: pa.Array) -> None:
    got = taken(wanted, column)
    assert got[0].startswith("v: a value of type ")
    if column.null_count:
        assert got[1] is None


NO_MOMENTS = [
    pa.array([2**31 - 1], pa.int32()).cast(pa.date32()),
    pa.array([-(2**40)], pa.int64()).cast(pa.timestamp("s")),
    pa.array([2**50], pa.int64()).cast(pa.timestamp("ms", "UTC")),
]


@pytest.mark.parametrize("column", NO_MOMENTS, ids=lambda c: str(c.type))
@pytest.mark.parametrize("wanted", ["BIGINT", "TIMESTAMP"])
def test_a_moment_that_python_does_not_have_is_no_instant(wanted: str, column: pa.Array) -> None:
    text = f"CREATE STREAM S (ts {wanted}, v INTEGER) TIMESTAMP BY ts"
    if wanted == "BIGINT":
        text = "CREATE STREAM S (v INTEGER) TIMESTAMP BY ts BIGINT"
    (stream,) = compile_script(text).catalog.streams()
    done = normalise(stream, frame_of(stream, pa.table({"ts": column, "v": [1]})))
    [reason] = done.rejected["_reason"].to_list()
    assert f"is not a valid {wanted}" in reason


def test_a_text_that_is_not_utf8_refuses_its_row_alone() -> None:
    column = pa.array([b"\xff", b"b"]).view(pa.string())
    assert taken("VARCHAR", column) == [r"v: '\xff' is not UTF-8", "b"]


@pytest.mark.parametrize("value", [[1], {"a": 1}, object(), "\ud800", b"x"])
def test_a_python_value_that_is_none_of_ours_refuses_its_row(value: Any) -> None:
    assert is_refused(taken("VARCHAR", [value])[0])


def test_a_message_quotes_a_line_of_a_value_and_no_more() -> None:
    [reason] = taken("BIGINT", ["x\n" * 100_000])
    assert len(reason) < 200
    assert "\n" not in reason


def test_a_batch_without_any_value_has_all_its_rows() -> None:
    stream = stream_of("BIGINT")
    frame = pl.DataFrame({"ts": [None] * 3, "v": [None] * 3})
    assert normalise(stream, frame).rejected["_row"].to_list() == [0, 1, 2]


def test_of_a_repeated_column_the_first_counts() -> None:
    stream = stream_of("BIGINT")
    table = pa.Table.from_arrays([pa.array([1])] * 2 + [pa.array([5])], names=["ts", "v", "v"])
    assert normalise(stream, frame_of(stream, table)).rows["c1"].to_list() == [1]


texts = st.none() | st.sampled_from(
    ["1", "-0", "+7", " 5 ", "x", "", "1.25", "1.005", "-0.0", "1e3", "1e400", "nan", "inf"]
    + ["9007199254740993", "9223372036854775808", "true", "0", "T", "2024-02-29", "2023-02-29"]
    + ["2024-02-29T01:02:03", "2024-02-29 01:02:03+02:00", "2024-02-29T01:02:03.5Z", "0000-01-01"]
)


@pytest.mark.parametrize("wanted", WANTED)
@given(st.lists(texts, max_size=8))
def test_a_text_is_read_alike_whoever_is_beside_it(wanted: str, column: list[str | None]):
    together = taken(wanted, column)
    alone = [taken(wanted, [text])[0] for text in column]
    assert [repr(v) for v in together] == [repr(v) for v in alone]
