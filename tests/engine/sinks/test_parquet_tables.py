from pathlib import Path

import polars as pl
import pytest
from tests.engine.sinks.emissions import COLUMNS, PLAIN, emission, numbers, output

from thalweg.cql import compile_script
from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.groups.cost_model import Sharing
from thalweg.engine.shared.results.emission import Emission, FamilyEmission
from thalweg.engine.shared.state.outputs import EVERY_QUERY
from thalweg.engine.shared.state.store import Store
from thalweg.engine.shared.tick.executors import InProcess
from thalweg.engine.sinks.base import SinkError, SinkOutlet, open_where_it_was
from thalweg.engine.sinks.callback import CallbackSink
from thalweg.engine.sinks.parquet_tables import ParquetTablesSink


def opened(folder: Path, committed: bytes | None = None) -> ParquetTablesSink:
    sink = ParquetTablesSink(folder)
    sink.open(committed)
    return sink


def family(tick: int, *rows: tuple[int, int], columns: tuple[str, ...] = ("n",)) -> FamilyEmission:
    """Of the members a, b and c; rows are (place, value)."""
    schema = {"_m": pl.UInt32, "_ts": pl.Int64, "_op": pl.Int8, "c0": pl.Int64}
    frame = pl.DataFrame([(m, v, 1, v) for m, v in rows], schema, orient="row")
    names = (columns * 3)[:3] if len(columns) == 1 else columns
    columns_of = tuple((n,) for n in names)
    return FamilyEmission(("a", "b", "c"), (1, 2, 3), columns_of, tick - 1, tick, frame)


def said(folder: Path) -> list[tuple[str, int]]:
    table = pl.read_parquet(folder / "n-*" / "*.parquet")
    return list(table.select(pl.col("_query").cast(pl.String), "n").rows())


def test_all_rows_of_the_same_columns_are_one_file_a_tick(tmp_path: Path):
    sink = opened(tmp_path)
    sink.write_all(output(family(1, (0, 5), (2, 6), (2, 7)), numbers(1, 8, query="alone"), tick=1))
    sink.write_all(output(numbers(2, 9, query="alone"), tick=2))
    assert sorted(p.name for p in tmp_path.glob("*/*")) == [
        "tick-000000000001.parquet",
        "tick-000000000002.parquet",
    ]
    assert said(tmp_path) == [("a", 5), ("c", 6), ("c", 7), ("alone", 8), ("alone", 9)]


def test_every_type_and_both_signs_arrive(tmp_path: Path):
    sink = opened(tmp_path)
    sink.write_all(output(emission(12, (7, 1, *PLAIN), (8, -1, *PLAIN)), tick=12))
    (file,) = tmp_path.glob("*/*")
    table = pl.read_parquet(file)
    assert table.columns == ["_query", "_ts", "_op", *COLUMNS]
    assert table.rows() == [("q", 7, "+", *PLAIN), ("q", 8, "-", *PLAIN)]


def test_other_columns_are_another_table_also_within_a_family(tmp_path: Path):
    sink = opened(tmp_path)
    sink.write_all(output(family(1, (0, 1), (1, 2), (2, 3), columns=("n", "other", "n")), tick=1))
    assert said(tmp_path) == [("a", 1), ("c", 3)]
    (other,) = tmp_path.glob("other-*/*.parquet")
    assert pl.read_parquet(other).rows() == [("b", 2, "+", 2)]


def test_the_same_names_of_other_types_are_another_table(tmp_path: Path):
    text = pl.DataFrame({"_ts": [1], "_op": pl.Series([1], dtype=pl.Int8), "c0": ["x"]})
    sink = opened(tmp_path)
    sink.write_all(output(numbers(1, 1), Emission("t", 1, ("n",), 0, 1, text), tick=1))
    assert len(list(tmp_path.glob("n-*/tick-*"))) == 2


def test_a_column_named_like_the_sinks_own_gets_another_underscore(tmp_path: Path):
    sink = opened(tmp_path)
    sink.write_all(output(family(1, (1, 4), columns=("_query",)), tick=1))
    (file,) = tmp_path.glob("*/*")
    row = {"_query": "b", "_ts": 4, "_op": "+", "__query": 4}
    assert pl.read_parquet(file).to_dicts() == [row]


def test_files_beyond_the_committed_tick_and_half_written_ones_go(tmp_path: Path):
    sink = opened(tmp_path)
    sink.write_all(output(family(1, (0, 1)), tick=1))
    committed = sink.progress()
    sink.write_all(output(family(2, (0, 2)), tick=2))
    (folder,) = tmp_path.iterdir()
    (folder / ".partial-tick-000000000003.parquet").write_bytes(b"half")
    again = opened(tmp_path, committed)
    assert [p.name for p in folder.iterdir()] == ["tick-000000000001.parquet"]
    again.write_all(output(family(2, (0, 2)), tick=2))
    assert said(tmp_path) == [("a", 1), ("a", 2)]


def test_a_folder_with_results_of_another_run_is_refused(tmp_path: Path):
    opened(tmp_path).write_all(output(family(1, (0, 1)), tick=1))
    with pytest.raises(SinkError, match="results that this sink did not write"):
        opened(tmp_path)
    assert said(tmp_path) == [("a", 1)]


def test_a_tick_that_comes_again_because_another_sink_failed_is_written_once(tmp_path: Path):
    outlet = SinkOutlet()
    failures = [OSError("disk full")]

    def call(_: Emission) -> None:
        if failures:
            raise failures.pop()

    outlet.attach_all("tables", opened(tmp_path))
    outlet.attach("b", "call", CallbackSink(call))
    with pytest.raises(OSError, match="disk full"):
        outlet.deliver(output(family(1, (0, 1), (1, 2)), tick=1))
    outlet.deliver(output(family(1, (0, 1), (1, 2)), tick=1))
    assert said(tmp_path) == [("a", 1), ("b", 2)]
    store = Store(tmp_path / "data")
    outlet.write_progress(store)
    assert store.outputs.progress(EVERY_QUERY, "tables") == b"1"
    store.close()
    outlet.detach_all("tables")
    assert [outlet.wants(q) for q in "ab"] == [False, True]


QUERIES = "CREATE STREAM S (n BIGINT) TIMESTAMP BY ts BIGINT;" + "".join(
    f"CREATE QUERY q{i} AS SELECT ISTREAM n FROM S [Now] WHERE n >= {i} AND n < {i + 2};"
    for i in range(5)
)


@pytest.mark.parametrize("sharing", [Sharing.WHERE_IT_PAYS, Sharing.NEVER])
def test_an_engine_delivers_every_query_and_goes_on_after_a_crash(tmp_path: Path, sharing: Sharing):
    script = compile_script(QUERIES)

    def start() -> tuple[SharedEngine, ParquetTablesSink]:
        outlet, sink = SinkOutlet(), ParquetTablesSink(tmp_path / "out")
        engine = SharedEngine(tmp_path / "data", InProcess(), outlet=outlet, sharing=sharing)
        open_where_it_was(engine.store, EVERY_QUERY, "tables", sink)
        outlet.attach_all("tables", sink)
        for stream in script.catalog.streams():
            engine.add_stream(stream)
        engine.add_queries(script.queries)
        return engine, sink

    engine, sink = start()
    engine.push("S", pl.DataFrame({"ts": [0, 1, 2], "n": [0, 3, 1]}))
    engine.tick()
    engine.close()
    sink.write_all(output(numbers(2, 99), tick=2))  # and no commit
    engine, _ = start()
    engine.push("S", pl.DataFrame({"ts": [3], "n": [4]}))
    engine.finish("S")
    engine.run_to_end()
    engine.close()
    expected = [(f"q{i}", n) for n in (0, 3, 1, 4) for i in range(5) if i <= n < i + 2]
    assert sorted(said(tmp_path / "out")) == sorted(expected)
