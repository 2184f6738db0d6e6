from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from tests.engine.sinks.emissions import COLUMNS, PLAIN, emission, numbers

from thalweg.engine.shared.results.emission import Emission
from thalweg.engine.sinks.base import SinkError
from thalweg.engine.sinks.parquet import ParquetSink
from thalweg.plan.windows import FOREVER


def values(folder: Path) -> list[int]:
    return pl.read_parquet(folder / "*.parquet")["n"].to_list()


def names(folder: Path) -> list[str]:
    """But for the lock."""
    return sorted(p.name for p in folder.iterdir() if p.name != ".lock")


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
    sink.close()
    again = ParquetSink(tmp_path)
    again.open(committed)
    assert names(tmp_path) == ["run-1-from-0-upto-1.parquet"]
    again.write(numbers(2, 2))
    assert values(tmp_path) == [1, 2]


def test_a_folder_with_results_of_another_run_is_refused(tmp_path: Path):
    first = ParquetSink(tmp_path)
    first.open(None)
    first.write(numbers(1, 1))
    first.close()
    with pytest.raises(SinkError, match="results that this sink did not write"):
        ParquetSink(tmp_path).open(None)
    assert values(tmp_path) == [1]


def test_a_column_named_like_the_sinks_own_gets_another_underscore(tmp_path: Path):
    rows = pl.DataFrame({"_ts": [1], "_op": [1], "c0": [5], "c1": [6]})
    sink = ParquetSink(tmp_path)
    sink.open(None)
    sink.write(Emission("q", 1, ("_ts", "__ts"), 0, 1, rows))
    table = pl.read_parquet(tmp_path / "*.parquet")
    assert table.to_dicts() == [{"_ts": 1, "_op": "+", "__ts": 5, "___ts": 6}]


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def waiting_sink(folder: Path, clock: Clock, committed: bytes | None = None) -> ParquetSink:
    sink = ParquetSink(folder, most_rows=3, most_age_s=10.0, clock=clock)
    sink.open(committed)
    return sink


def test_a_file_is_written_once_it_is_large_enough(tmp_path: Path):
    sink = waiting_sink(tmp_path, Clock())
    sink.write(numbers(1, 1))
    sink.write(numbers(2, 2))
    assert names(tmp_path) == [".waiting-0"]
    sink.write(numbers(3, 3))
    assert "run-1-from-0-upto-3.parquet" in names(tmp_path)
    assert values(tmp_path) == [1, 2, 3]


def test_a_file_is_written_once_it_is_old_enough(tmp_path: Path):
    clock = Clock()
    sink = waiting_sink(tmp_path, clock)
    sink.write(numbers(1, 1))
    clock.now_s = 9.0
    sink.write(numbers(2))
    assert not sink.rest()
    clock.now_s = 10.0
    assert sink.rest()
    assert "run-1-from-0-upto-2.parquet" in names(tmp_path)
    assert not sink.rest()


def test_rows_that_wait_survive_a_crash_at_every_point(tmp_path: Path):
    """However a tick is interrupted and repeated, every row is in one file."""
    for crashing in range(1, 8):
        folder, clock = tmp_path / str(crashing), Clock()
        sink = waiting_sink(folder, clock)
        committed = sink.progress()
        for tick in range(1, 8):
            sink.write(numbers(tick, tick, tick + 100))
            if tick == crashing:
                sink.progress()  # and no commit
                sink.close()
                sink = waiting_sink(folder, clock, committed)
                sink.write(numbers(tick, tick, tick + 100))
            committed = sink.progress()
        assert sink.finish()
        sink.close()
        assert sorted(values(folder)) == sorted([*range(1, 8), *range(101, 108)])


def test_the_end_of_a_stream_and_the_end_of_the_service_write_what_waits(tmp_path: Path):
    sink = waiting_sink(tmp_path / "a", Clock())
    sink.write(numbers(1, 1))
    assert sink.finish()
    assert values(tmp_path / "a") == [1]
    other = waiting_sink(tmp_path / "b", Clock())
    other.write(numbers(1, 1))
    other.write(replace(numbers(2), upto=FOREVER))
    assert values(tmp_path / "b") == [1]


def test_progress_of_older_versions_is_read(tmp_path: Path):
    sink = ParquetSink(tmp_path)
    sink.open(None)
    sink.write(numbers(1, 1))
    sink.write(numbers(2, 2))
    sink.close()
    again = ParquetSink(tmp_path)
    again.open(b"1")
    assert values(tmp_path) == [1]


def test_two_sinks_on_one_folder_are_refused(tmp_path: Path):
    one = ParquetSink(tmp_path)
    one.open(None)
    with pytest.raises(SinkError, match="another sink writes to"):
        ParquetSink(tmp_path).open(None)
    one.close()
    ParquetSink(tmp_path).open(one.progress())
