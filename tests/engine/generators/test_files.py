import json

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from thalweg.engine.generators import GeneratorError, make_generator, write_files

OPTIONS = {"limit": "2500", "out_of_order": "0.2", "max_delay": "500"}


def _expected(generator, stream):
    return pa.Table.from_batches(generator.batches(stream)).combine_chunks()


def test_parquet_files_keep_the_order_of_arrival(tmp_path):
    generator = make_generator("sensors", OPTIONS)
    paths = write_files(generator, "Reading", tmp_path / "new", 1000)
    assert paths == sorted((tmp_path / "new").iterdir())
    tables = [pyarrow.parquet.read_table(path) for path in paths]
    assert [t.num_rows for t in tables] == [1000, 1000, 500]
    assert pa.concat_tables(tables).combine_chunks() == _expected(generator, "Reading")


def test_csv_files_hold_the_same_rows(tmp_path):
    generator = make_generator("stocks", {**OPTIONS, "timestamps": "bigint"})
    paths = write_files(generator, "Quote", tmp_path, 2000, "csv")
    read = pa.concat_tables([pyarrow.csv.read_csv(path) for path in paths]).combine_chunks()
    assert read == _expected(generator, "Quote")


def test_json_files_hold_the_same_rows_with_null_and_iso_time(tmp_path):
    generator = make_generator("sensors", {**OPTIONS, "missing": "0.5"})
    paths = write_files(generator, "Reading", tmp_path, 2000, "json")
    rows = [json.loads(line) for path in paths for line in path.read_text().splitlines()]
    expected = _expected(generator, "Reading").to_pylist()
    assert [r["temperature"] for r in rows] == [r["temperature"] for r in expected]
    assert [r["ts"] for r in rows] == [r["ts"].isoformat(sep=" ") for r in expected]
    assert None in [r["temperature"] for r in rows]


def test_endless_stream_and_unknown_format_are_refused(tmp_path):
    with pytest.raises(GeneratorError, match="set limit"):
        write_files(make_generator("sensors"), "Reading", tmp_path, 10)
    with pytest.raises(GeneratorError, match=r"no file format parkett.*did you mean parquet"):
        write_files(make_generator("sensors", OPTIONS), "Reading", tmp_path, 10, "parkett")
