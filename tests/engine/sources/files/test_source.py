"""Files read once to the end, in this process; `test_on_spark` reads the same through Spark."""

from pathlib import Path

import polars as pl
import pytest
from tests.engine.sources.files.recordings import numbered, rows, write, write_many
from tests.engine.sources.landings import Landed

from thalweg.engine.sources import SourceError, open_source
from thalweg.engine.sources.feed import Stopped

FORMS = ["csv", "csv.gz", "json", "parquet"]


def opened(stream, folder: Path, rows_per_batch: int = 100):
    return open_source(stream, None, folder, live=False, rows_per_batch=rows_per_batch)


@pytest.mark.parametrize("form", FORMS)
def test_tuples_come_by_file_and_row_whatever_the_modification_times(tmp_path: Path, form: str):
    write_many(tmp_path / "in", form, range(0, 1300, 100))
    stream = numbered("in")
    taken = Landed(tmp_path / "data", stream).run(opened(stream, tmp_path, 30))
    assert taken.rows == rows(0, 1200)
    assert taken.is_finished


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("backlog", [1, 250, 560, 1001])
def test_after_a_restart_it_goes_on_where_it_was(tmp_path: Path, form: str, backlog: int):
    write_many(tmp_path / "in", form, [0, 250, 251, 700, 1000])
    stream = numbered("in")
    first = Landed(tmp_path / "data", stream, largest_backlog=backlog)
    first.feed.wait = lambda _: True  # there is no engine to make room: give up at once
    if backlog <= 1000:
        with pytest.raises(Stopped):
            first.run(opened(stream, tmp_path, 90))
    else:
        first.run(opened(stream, tmp_path, 90))
    landed = len(first.rows)
    first.close()
    again = Landed(tmp_path / "data", stream).run(opened(stream, tmp_path, 77))
    assert backlog <= landed or landed == 1000
    assert again.rows == rows(0, 1000)


def test_each_file_can_be_a_partition_of_its_own(tmp_path: Path):
    write_many(tmp_path / "in", "json", [0, 10, 30, 60])
    stream = numbered("in", "partitions 'file'")
    taken = Landed(tmp_path / "data", stream).run(opened(stream, tmp_path, 8))
    sql = "SELECT partition, position FROM partitions ORDER BY partition"
    assert taken.engine.store.all(sql) == [(0, 10), (1, 20), (2, 30)]
    taken.close()
    again = Landed(tmp_path / "data", stream).run(opened(stream, tmp_path, 8))
    assert again.rows == rows(0, 60)


def test_poison_lines_go_to_the_rejects_with_their_place(tmp_path: Path):
    write(tmp_path / "a.csv", 0, 3)
    with (tmp_path / "a.csv").open("a") as file:
        file.write("3,x\nfour,x,7\n5,text 5,7\n")
    stream = numbered("a.csv")
    taken = Landed(tmp_path / "data", stream).run(opened(stream, tmp_path))
    assert taken.rows == rows(0, 3) + rows(5, 6)
    path = tmp_path / "a.csv"
    assert [r["reason"] for r in taken.rejects] == [
        f"{path}, line 5: 2 values, not 3",
        "n: 'four' is not a valid BIGINT",
    ]


def test_a_last_line_without_an_end_counts(tmp_path: Path):
    (tmp_path / "a.csv").write_text("n,text,ts\n0,text 0,7\n1,text 1,7")
    stream = numbered("a.csv")
    assert Landed(tmp_path / "d", stream).run(opened(stream, tmp_path)).rows == rows(0, 2)


def test_a_folder_may_hold_other_things_too(tmp_path: Path):
    write_many(tmp_path / "in", "csv", [0, 5, 10])
    (tmp_path / "in" / "README.txt").write_text("about these files")
    stream = numbered("in")
    assert Landed(tmp_path / "d", stream).run(opened(stream, tmp_path)).rows == rows(0, 10)


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("in/b.csv", "", "there is no file .*/in/b.csv; did you mean a.csv?"),
        ("in", "", "S: the names in .*in do not tell their format: add OPTIONS"),
        ("in", "format 'xml'", "S: option format is csv or json or parquet, not 'xml'"),
        ("in/a.csv", "head 'true'", "S: there is no option head; did you mean header?"),
        ("in/a.csv", "header 'maybe'", "S: option header is true or false, not 'maybe'"),
        ("in/a.csv", "delimiter ';;'", "S: option delimiter is one character, not ';;'"),
        ("in/a.json", "header 'true'", "S: there is no option header"),
        ("s3a://bucket/x.csv", "", "S: only Spark can read s3a://bucket/x.csv: run with"),
        ("ftp://host/x.csv", "", "S: there is no source ftp:"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_way_out(tmp_path, source, options, message):
    (tmp_path / "in").mkdir()
    write(tmp_path / "in" / "a.csv", 0, 1)
    write(tmp_path / "in" / "a.json", 0, 1)
    with pytest.raises(SourceError, match=message.replace("?", r"\?")):
        opened(numbered(source, options), tmp_path)


def test_a_folder_without_files_is_refused_when_it_is_read(tmp_path: Path):
    (tmp_path / "in").mkdir()
    stream = numbered("in", "format 'csv'")
    with pytest.raises(SourceError, match="S: there is no file in"):
        Landed(tmp_path / "data", stream).run(opened(stream, tmp_path))


def test_parquet_columns_need_not_have_the_declared_types(tmp_path: Path):
    table = pl.DataFrame({"TEXT": ["a", "b"], "N": [1, 2], "ts": [1, 2], "more": [0, 0]})
    table.with_columns(pl.col("N").cast(pl.Int16)).write_parquet(tmp_path / "a.parquet")
    stream = numbered("a.parquet")
    taken = Landed(tmp_path / "d", stream).run(opened(stream, tmp_path))
    assert taken.rows == [(1, "a"), (2, "b")]
