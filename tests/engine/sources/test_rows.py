from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.engine.sources.landings import Landed, stream_of

from thalweg.engine.sources.errors import SourceError
from thalweg.engine.sources.rows import frame_of

STREAM = stream_of(
    "CREATE STREAM S (i INTEGER, d DOUBLE, n DECIMAL(10, 2), t VARCHAR, b BOOLEAN, day DATE,"
    " at TIMESTAMP) TIMESTAMP BY ts"
)
GOOD = (1, 0.5, Decimal("1.25"), "x", True, date(2025, 1, 2), datetime(2025, 1, 2, 3, 4), 10)


def landed(tmp_path: Path, rows: list) -> Landed:
    taken = Landed(tmp_path, STREAM)
    taken.feed.push(frame_of(STREAM, rows))
    return taken


def test_tuples_come_in_the_order_of_the_columns_and_the_timestamp(tmp_path: Path):
    assert landed(tmp_path, [GOOD]).rows == [GOOD[:-1]]


def test_dicts_are_read_by_name_in_any_case_and_lack_what_is_null(tmp_path: Path):
    taken = landed(tmp_path, [{"I": 7, "TS": 1, "other": 5}, {"i": 8, "ts": 2, "d": None}])
    assert [row[0] for row in taken.rows] == [7, 8]
    assert taken.rows[0][1:] == (None,) * 6


@pytest.mark.parametrize(
    "table",
    [
        pl.DataFrame({"i": [1, 2], "ts": [1, 2]}),
        pa.table({"i": [1, 2], "ts": [1, 2]}),
        pa.record_batch({"i": [1, 2], "ts": [1, 2]}),
        pd.DataFrame({"i": [1, 2], "ts": [1, 2]}),
    ],
    ids=["polars", "arrow", "record batch", "pandas"],
)
def test_tables_are_taken_as_they_are(table):
    assert frame_of(STREAM, table).to_dict(as_series=False) == {"i": [1, 2], "ts": [1, 2]}


@pytest.mark.parametrize(
    ("place", "value", "reason"),
    [
        (0, "seven", "i: 'seven' is not a valid INTEGER"),
        (0, 1.5, "i: '1.5' is not a valid INTEGER"),
        (0, True, "i: 'True' is not a valid INTEGER"),
        (0, 1 << 40, "i: '1099511627776' is not a valid INTEGER"),
        (1, float("nan"), "d: 'nan' is not a valid DOUBLE"),
        (2, "much", "n: 'much' is not a valid DECIMAL(38,2)"),
        (3, 5, "t: '5' is not a valid VARCHAR"),
        (4, 1, "b: '1' is not a valid BOOLEAN"),
        (5, "2025-13-01", "day: '2025-13-01' is not a valid DATE"),
        (6, [], "at: '[]' is not a valid TIMESTAMP"),
        (7, None, "ts: the timestamp is missing"),
    ],
)
def test_a_poison_value_costs_its_own_row_only(tmp_path: Path, place, value, reason):
    bad = (*GOOD[:place], value, *GOOD[place + 1 :])
    taken = landed(tmp_path, [GOOD, bad, GOOD])
    assert taken.rows == [GOOD[:-1]] * 2
    assert [r["reason"] for r in taken.rejects] == [reason]


def test_values_of_a_neighbouring_type_are_taken_whatever_stands_beside_them(tmp_path: Path):
    near = (2.0, 3, 1.5, "x", "true", datetime(2025, 1, 2), datetime(2025, 1, 2, tzinfo=UTC), "11")
    bad = ("poison",) * 8
    taken = landed(tmp_path, [GOOD, near, bad])
    midnight = datetime(2025, 1, 2)
    assert taken.rows[1] == (2, 3.0, Decimal("1.50"), "x", True, date(2025, 1, 2), midnight)
    assert len(taken.rejects) == 1


def test_a_row_of_the_wrong_length_is_the_callers_mistake():
    with pytest.raises(SourceError, match=r"8 values \(i, d, n, t, b, day, at, ts\), not \(1, 2\)"):
        frame_of(STREAM, [(1, 2)])
