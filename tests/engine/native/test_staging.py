from datetime import date, datetime
from decimal import Decimal

import polars as pl
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.engine.arrivals import Arrival, admit
from thalweg.engine.native.staging import stage
from thalweg.engine.sources.recording import Recording
from thalweg.plan.catalog import Field, StreamDef
from thalweg.plan.types import BIGINT, BOOLEAN, DATE, DOUBLE, TIMESTAMP, VARCHAR, decimal

STREAM = StreamDef("S", (Field("a", BIGINT),), "ts", BIGINT, lateness=3)


def _arrivals(*stamps: int | tuple[int, int]) -> list[Arrival]:
    """Timestamps, or (partition, timestamp)."""
    pairs = [s if isinstance(s, tuple) else (0, s) for s in stamps]
    return [Arrival(p, ts, position, (position,)) for position, (p, ts) in enumerate(pairs)]


def _staged_rows(staged) -> list[tuple]:
    files = sorted(staged.folder.iterdir())
    return [tuple(row.values()) for file in files for row in pq.read_table(file).to_pylist()]


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(-20, 20)), max_size=40),
    st.integers(1, 7),
    st.integers(0, 6),
)
def test_late_tuples_are_those_of_the_rule(tmp_path_factory, pairs, rows_per_file, lateness):
    stream = StreamDef("S", (Field("a", BIGINT),), "ts", BIGINT, lateness=lateness)
    arrivals = _arrivals(*pairs)
    folder = tmp_path_factory.mktemp("staged") / "S"
    staged = stage(stream, arrivals, folder, rows_per_file)
    expected = admit(stream, arrivals)
    assert sorted(_staged_rows(staged)) == sorted((a.timestamp, *a.row) for a in expected.accepted)
    assert (staged.rows, staged.late) == (len(expected.accepted), len(expected.late))


def test_files_are_in_order_of_arrival_and_of_modification(tmp_path):
    staged = stage(STREAM, _arrivals(5, 4, 7, 6, 9), tmp_path / "S", 2)
    assert [ts for ts, _ in _staged_rows(staged)] == [5, 4, 7, 6, 9]
    by_name = sorted((tmp_path / "S").iterdir())
    assert len(by_name) == 3
    assert sorted(by_name, key=lambda f: f.stat().st_mtime) == by_name


def test_files_are_full_whatever_the_partitions(tmp_path):
    staged = stage(STREAM, _arrivals((0, 1), (1, 1), (0, 2), (1, 2), (0, 3)), tmp_path / "S", 2)
    assert [pq.read_table(f).num_rows for f in sorted(staged.folder.iterdir())] == [2, 2, 1]


def test_disorder_is_measured_over_all_partitions(tmp_path):
    # Partition 1 is far behind partition 0, yet nothing of it is late.
    staged = stage(STREAM, _arrivals((0, 100), (1, 1), (1, 2), (0, 98)), tmp_path / "S", 10)
    assert (staged.rows, staged.late, staged.disorder) == (4, 0, 99)
    assert (staged.first, staged.newest) == (1, 100)


def test_tuples_below_the_horizon_count_for_the_watermark_only(tmp_path):
    staged = stage(STREAM, _arrivals(9, 3, 10), tmp_path / "S", 10, horizon=10)
    assert _staged_rows(staged) == [(10, 2)]
    assert staged.late == 1


def test_empty_stream_is_an_empty_folder(tmp_path):
    staged = stage(STREAM, [], tmp_path / "S", 10)
    assert (staged.rows, staged.first, list(staged.folder.iterdir())) == (0, None, [])


def test_values_of_all_types_survive_and_doubles_are_finite(tmp_path):
    kinds = (BOOLEAN, BIGINT, DOUBLE, decimal(2), VARCHAR, DATE, TIMESTAMP)
    stream = StreamDef("V", tuple(Field(f"f{i}", t) for i, t in enumerate(kinds)), "ts", BIGINT)
    moment = datetime(2024, 2, 29, 1, 2, 3, 4)
    rows = [
        (True, 2**62, -0.0, Decimal("1.50"), "é", date(1, 1, 1), moment),
        (None, None, float("nan"), None, None, None, None),
    ]
    arrivals = [Arrival(0, i, i, row) for i, row in enumerate(rows)]
    (first, second) = _staged_rows(stage(stream, arrivals, tmp_path / "V", 10))
    assert first == (0, True, 2**62, 0.0, Decimal("1.50"), "é", date(1, 1, 1), moment)
    assert str(first[3]) == "0.0"
    assert second == (1, *[None] * 7)


@pytest.mark.parametrize("rows_per_file", [1, 2, 100])
def test_recorded_batches_are_staged_as_arrivals_are(tmp_path, rows_per_file):
    recording = Recording(tmp_path)
    stamps = [(0, [5, 1, 6]), (1, [2, 9]), (0, [7, 3])]
    for partition, batch in stamps:
        frame = pl.DataFrame({"a": [10 * t for t in batch], "ts": batch})
        recording.push(STREAM, frame, partition=partition)
    arrivals = list(recording.arrivals(STREAM))
    from_batches = stage(STREAM, recording, tmp_path / "batches", rows_per_file)
    from_arrivals = stage(STREAM, arrivals, tmp_path / "arrivals", rows_per_file)
    assert _staged_rows(from_batches) == _staged_rows(from_arrivals)
    assert from_batches.late == from_arrivals.late == 2
