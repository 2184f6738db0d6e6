import json
from datetime import datetime
from decimal import Decimal

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.sinks.emissions import NULLS, PLAIN, emission

from thalweg.engine.shared.results.emission import Emission
from thalweg.engine.sinks.encode import json_lines, text_bytes


def lines(*rows: tuple) -> list[str]:
    return bytes(text_bytes(json_lines(emission(1, *rows)))).decode().splitlines()


def test_a_line_says_query_instant_sign_and_row():
    (line,) = lines((7, -1, *PLAIN))
    assert line == (
        '{"query":"q","ts":7,"op":"-","row":{"a":1,"ts":"one","X.A":0.5,"price":1.50,'
        '"day":"2025-01-02","at":"2025-01-02T03:04:05","ok":true}}'
    )


def test_null_is_null_in_every_type():
    (line,) = lines((7, 1, *NULLS))
    assert json.loads(line)["row"] == dict.fromkeys(("a", "ts", "X.A", "price", "day", "at", "ok"))


def test_a_decimal_keeps_all_its_digits():
    big = Decimal("-123456789012345678901234567890123456.78")
    (line,) = lines((7, 1, *PLAIN[:3], big, *PLAIN[4:]))
    assert json.loads(line, parse_float=Decimal)["row"]["price"] == big


def test_a_fraction_of_a_second_has_three_or_six_digits():
    moments = [datetime(2025, 1, 1, 0, 0, 0, us) for us in (0, 120_000, 123_456)]
    found = [
        json.loads(x)["row"]["at"] for x in lines(*[(1, 1, *PLAIN[:5], m, True) for m in moments])
    ]
    assert found == ["2025-01-01T00:00:00", "2025-01-01T00:00:00.120", "2025-01-01T00:00:00.123456"]


@given(st.lists(st.text() | st.none()), st.text(min_size=1))
def test_any_text_reads_back(texts, column):
    schema = {"_ts": pl.Int64, "_op": pl.Int8, "c0": pl.String}
    rows = pl.DataFrame([(i, 1, t) for i, t in enumerate(texts)], schema, orient="row")
    encoded = bytes(text_bytes(json_lines(Emission("q", 1, (column,), 0, 1, rows)))).decode()
    assert [json.loads(x)["row"] for x in encoded.split("\n")[:-1]] == [{column: t} for t in texts]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False)))
def test_any_double_reads_back(values):
    schema = {"_ts": pl.Int64, "_op": pl.Int8, "c0": pl.Float64}
    rows = pl.DataFrame([(i, 1, v) for i, v in enumerate(values)], schema, orient="row")
    encoded = bytes(text_bytes(json_lines(Emission("q", 1, ("x",), 0, 1, rows)))).decode()
    assert [json.loads(x)["row"]["x"] for x in encoded.splitlines()] == values


def test_a_slice_of_the_lines_is_only_that():
    all_lines = json_lines(emission(1, *[(i, 1, *PLAIN) for i in range(5)]))
    assert bytes(text_bytes(all_lines[2:4])).decode() == "".join(all_lines[2:4])


def test_a_type_without_json_form_is_refused():
    rows = pl.DataFrame({"_ts": [1], "_op": [1], "c0": [b"x"]})
    with pytest.raises(TypeError, match="no JSON form"):
        json_lines(Emission("q", 1, ("x",), 0, 1, rows))
