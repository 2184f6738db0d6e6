"""Files that only Spark can reach: the same tuples in the same order, however it cuts the work.

Local files stand for remote ones: `open_remote_files` does not care.
"""

from pathlib import Path

import polars as pl
import pytest
from pyspark.sql import SparkSession
from tests.engine.sources.files.recordings import numbered, rows, write, write_many
from tests.engine.sources.landings import Landed

from thalweg.engine.sources.errors import SourceError
from thalweg.engine.sources.feed import Stopped
from thalweg.engine.sources.files import on_spark, open_remote_files


@pytest.fixture
def small_splits(spark: SparkSession):
    """Splits of a few kilobytes: even small files are read by many tasks."""
    session = spark.newSession()
    session.conf.set("spark.sql.files.maxPartitionBytes", "4096")
    session.conf.set("spark.sql.files.openCostInBytes", "0")
    session.newSession = lambda: session
    return session


def opened(stream, spark, folder: Path, rows_per_batch: int = 300):
    uri = f"file://{folder / stream.source}"  # as Hadoop has it: nothing is escaped
    return open_remote_files(stream, uri, spark, rows_per_batch=rows_per_batch)


@pytest.mark.parametrize("form", ["csv", "csv.gz", "json", "parquet"])
def test_files_that_are_cut_into_many_splits_keep_their_order(tmp_path, small_splits, form):
    write_many(tmp_path / "in put", form, [0, 10, 3000, 3001, 5000])
    stream = numbered("in put")
    source = opened(stream, small_splits, tmp_path)
    taken = Landed(tmp_path / "data", stream).run(source)
    assert taken.rows == rows(0, 5000)
    assert taken.is_finished
    assert not list((tmp_path / "data" / "sources" / "S" / "pieces").iterdir())


def test_splits_really_are_read_by_many_tasks(tmp_path: Path, small_splits):
    write_many(tmp_path / "in", "csv", [0, 3000])
    frame = small_splits.read.text(str(tmp_path / "in"))
    assert frame.rdd.getNumPartitions() > 10


def test_after_a_restart_it_goes_on_where_it_was(tmp_path, small_splits, monkeypatch):
    monkeypatch.setattr(on_spark, "BYTES_PER_JOB", 10_000)  # several jobs
    write_many(tmp_path / "in", "csv", [0, 250, 251, 1700, 2000])
    stream = numbered("in")
    first = Landed(tmp_path / "data", stream, largest_backlog=900)
    first.feed.wait = lambda _: True
    with pytest.raises(Stopped):
        first.run(opened(stream, small_splits, tmp_path))
    landed = len(first.rows)
    first.close()
    again = Landed(tmp_path / "data", stream).run(opened(stream, small_splits, tmp_path, 77))
    assert 900 <= landed < 2000
    assert again.rows == rows(0, 2000)


def test_poison_lines_are_told_apart(tmp_path: Path, small_splits):
    write(tmp_path / "a.json", 0, 500)
    lines = (tmp_path / "a.json").read_bytes().splitlines(keepends=True)
    lines[100] = b'{"n": \n'
    lines[200] = b'{"n": 5, "text": "\xff", "ts": 7}\n'
    (tmp_path / "a.json").write_bytes(b"".join(lines))
    stream = numbered("a.json")
    taken = Landed(tmp_path / "data", stream).run(opened(stream, small_splits, tmp_path, 50))
    expected = rows(0, 500)
    assert taken.rows == expected[:100] + expected[101:200] + expected[201:]
    assert [r["reason"].split(": ")[0] for r in taken.rejects] == [
        f"{tmp_path}/a.json, line 101",
        f"{tmp_path}/a.json, line 201",
    ]


def test_names_with_special_characters_are_just_names(tmp_path: Path, spark: SparkSession):
    folder = tmp_path / "in {a}"
    folder.mkdir()
    write(folder / "50% [1] ä 2.csv", 0, 5)
    write(folder / "50% [1] ä 10.csv", 5, 9)
    stream = numbered("in {a}")
    assert Landed(tmp_path / "d", stream).run(opened(stream, spark, tmp_path)).rows == rows(0, 9)


def test_parquet_columns_need_not_have_the_declared_types(tmp_path: Path, spark: SparkSession):
    table = pl.DataFrame({"TEXT": ["a", "b"], "N": [1, 2], "ts": [1, 2], "more": [0, 0]})
    table.with_columns(pl.col("N").cast(pl.Int16)).write_parquet(tmp_path / "a.parquet")
    stream = numbered("a.parquet")
    taken = Landed(tmp_path / "d", stream).run(opened(stream, spark, tmp_path))
    assert taken.rows == [(1, "a"), (2, "b")]


def test_what_hadoop_does_not_find_is_an_error(tmp_path: Path, spark: SparkSession):
    with pytest.raises(SourceError, match=r"can't open file:.*none\.csv"):
        opened(numbered("none.csv"), spark, tmp_path)
