from pathlib import Path

import polars as pl
import pytest
from tests.engine.sources.landings import Landed, stream_of

from thalweg.engine.sources.iterable import IterableSource

STREAM = stream_of("CREATE STREAM S (a INTEGER) TIMESTAMP BY ts")
ROWS = [(n, n) for n in range(25)]


def test_rows_come_in_order_and_end_the_stream(tmp_path: Path):
    taken = Landed(tmp_path, STREAM).run(IterableSource(ROWS, rows_per_batch=10))
    assert taken.rows == [(n,) for n in range(25)]
    assert [f.height for f in taken.frames] == [10, 10, 5]
    assert taken.is_finished


def test_rows_and_tables_may_be_mixed(tmp_path: Path):
    table = pl.DataFrame({"a": [2, 3, 4], "ts": [2, 3, 4]})
    items = [(0, 0), {"a": 1, "ts": 1}, table, (5, 5)]
    taken = Landed(tmp_path, STREAM).run(IterableSource(items, rows_per_batch=2))
    assert taken.rows == [(n,) for n in range(6)]


@pytest.mark.parametrize("fails_at", [0, 3, 10, 17, 24])
def test_after_a_restart_it_goes_on_behind_the_last_row_that_landed(tmp_path: Path, fails_at: int):
    def broken():
        yield from ROWS[:fails_at]
        raise OSError("gone")

    first = Landed(tmp_path, STREAM)
    with pytest.raises(OSError, match="gone"):
        first.run(IterableSource(broken, rows_per_batch=4))
    first.close()
    again = Landed(tmp_path, STREAM).run(IterableSource(lambda: ROWS, rows_per_batch=3))
    assert again.rows == [(n,) for n in range(25)]


def test_a_stop_is_heeded_between_batches(tmp_path: Path):
    taken = Landed(tmp_path, STREAM)

    def rows():
        yield from ROWS[:12]
        taken.stop.set()
        yield from ROWS[12:]

    taken.run(IterableSource(rows, rows_per_batch=5))
    assert len(taken.rows) == 15
    assert not taken.is_finished
