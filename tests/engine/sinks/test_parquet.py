from pathlib import Path

import polars as pl
import pytest
from tests.engine.sinks.emissions import COLUMNS, PLAIN, emission, numbers

from thalweg.engine.shared.results.emission import Emission
from thalweg.engine.sinks.base import SinkError
from thalweg.engine.sinks.parquet import ParquetSink


def values(folder: Path) -> list[int]:
    return pl.read_parquet(folder / "*.parquet")["n"].to_list()


def test_a_tick_is_a_file_with_the_result_as_a_flat_table(tmp_path: Path):
    sink = ParquetSink(tmp_path)
    sink.open(None)
    sink.write(emission(12, (7, 1, *PLAIN), (8, -1, *PLAIN)))
    table = pl.read_parquet(tmp_path / "run-1-from-11-upto-12.parquet")
    assert table.columns == ["_ts", "_op", *COLUMNS]
    assert table.rows() == [(7, "+", *PLAIN), (8, "-", *PLAIN)]


def test_files_beyond_the_committed_tick_and_half_written_ones_go(tmp_path: Path):
    sink = ParquetSink(tmp_path)
    sink.open(None)
    sink.write(numbers(1, 1))
    committed = sink.progress()
    sink.write(numbers(2, 2))
    (tmp_path / ".partial-run-1-from-2-upto-3.parquet").write_bytes(b"half")
    again = ParquetSink(tmp_path)
    again.open(committed)
    assert [p.name for p in tmp_path.iterdir()] == ["run-1-from-0-upto-1.parquet"]
    again.write(numbers(2, 2))
    assert values(tmp_path) == [1, 2]


def test_a_folder_with_results_of_another_run_is_refused(tmp_path: Path):
    first = ParquetSink(tmp_path)
    first.open(None)
    first.write(numbers(1, 1))
    with pytest.raises(SinkError, match="results of another run"):
        ParquetSink(tmp_path).open(None)
    assert values(tmp_path) == [1]


def test_a_column_named_like_the_sinks_own_gets_another_underscore(tmp_path: Path):
    rows = pl.DataFrame({"_ts": [1], "_op": [1], "c0": [5], "c1": [6]})
    sink = ParquetSink(tmp_path)
    sink.open(None)
    sink.write(Emission("q", 1, ("_ts", "__ts"), 0, 1, rows))
    table = pl.read_parquet(tmp_path / "*.parquet")
    assert table.to_dicts() == [{"_ts": 1, "_op": "+", "__ts": 5, "___ts": 6}]
