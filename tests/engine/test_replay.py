"""From files through any engine to JSON lines: what every user of `replay` relies on."""

import io
import json
from itertools import cycle
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.conformance.case_files import Case, all_cases
from tests.conformance.runner import compare, prepare, reference_engine
from tests.drawn import some
from tests.engine.recorded_cases import Recorded, entries, printed, record_case

from thalweg.cql import compile_script
from thalweg.engine import native
from thalweg.engine.reference import Options, evaluate_stream_of
from thalweg.engine.replay import Replay, ReplayError, Status, replay
from thalweg.engine.shared.tick.executors import InProcess
from thalweg.engine.sources import SourceError
from thalweg.engine.sources.recording import record
from thalweg.engine.sources.registry import open_source

CASES = [case for case in all_cases() if not case.options]

# Each case once, but in all kinds of ways: form, tuples a file, tuples a tick, tasks.
WAYS = [
    ("csv", 3, 1, 1),
    ("json", 2, 2, 1),
    ("parquet", 1, 1000, 2),
    ("csv", 1000, 3, 3),
    ("json", 1, 1000, 1),
    ("parquet", 1000, 2, 1),
    ("csv", 1, 2, 1),
]


def run(job: Replay) -> bytes:
    out = io.BytesIO()
    replay(job, to=out)
    return out.getvalue()


def check(recorded: Recorded, lines: bytes) -> None:
    queries = recorded.script.queries
    expected = recorded.prepared.expected
    if recorded.has_partitions:
        # Between partitions, files order equal instants in their own way.
        expected = reference_engine(recorded.script.catalog, queries, arrivals(recorded), Options())
    found = printed(lines, queries)
    for query in queries:
        assert not compare(query, expected[query.name], found[query.name])


def arrivals(recorded: Recorded) -> dict:
    streams = {s.name: s for s in recorded.script.catalog.streams() if s.source is not None}
    return {
        name: list(
            record(open_source(s, None, recorded.folder, live=False), s, recorded.folder).arrivals(
                s
            )
        )
        for name, s in streams.items()
    }


@pytest.mark.parametrize(
    ("case", "way"),
    list(zip(some(CASES, 2), cycle(WAYS))),
    ids=lambda x: x.name if isinstance(x, Case) else "",
)
def test_a_case_from_files_through_the_shared_engine(case: Case, way, tmp_path: Path):
    form, rows_per_file, tick_rows, tasks = way
    recorded = record_case(case, tmp_path, form, rows_per_file)
    job = Replay(recorded.script.queries, tmp_path, tick_rows=tick_rows, executor=InProcess(tasks))
    check(recorded, run(job))


@pytest.mark.parametrize("case", some(CASES[::3], 2), ids=lambda case: case.name)
def test_a_case_from_files_through_the_reference(case: Case, tmp_path: Path):
    recorded = record_case(case, tmp_path, "json", 2)
    check(recorded, run(Replay(recorded.script.queries, tmp_path, engine="reference")))


def is_native(case: Case) -> bool:
    try:
        for query in prepare(case).queries:
            native.check(query.plan)
    except native.Unsupported:
        return False
    return True


@pytest.mark.parametrize("case", [c for c in CASES if is_native(c)][::14], ids=lambda c: c.name)
def test_a_case_from_files_through_native(case: Case, tmp_path: Path, spark: SparkSession):
    recorded = record_case(case, tmp_path, "csv", 2)
    job = Replay(recorded.script.queries, tmp_path, engine="native", spark=spark, tick_rows=3)
    check(recorded, run(job))


@pytest.mark.parametrize("case", CASES[::60], ids=lambda case: case.name)
def test_a_case_from_files_through_spark(case: Case, tmp_path: Path, spark: SparkSession):
    recorded = record_case(case, tmp_path, "parquet", 2)
    check(recorded, run(Replay(recorded.script.queries, tmp_path, spark=spark, tick_rows=3)))


# --- what is printed, and in what order

AUCTIONS = """
CREATE STREAM OpenAuction (itemID BIGINT, sellerID BIGINT) TIMESTAMP BY timestamp TIMESTAMP
    FROM 'generator:auctions/OpenAuction' OPTIONS (limit '300', duration '60', rate '50');
CREATE STREAM ClosedAuction (itemID BIGINT, buyerID BIGINT) TIMESTAMP BY timestamp TIMESTAMP
    FROM 'generator:auctions/ClosedAuction' OPTIONS (limit '200', duration '60', rate '50');
CREATE QUERY sold AS SELECT O.itemID, C.buyerID
    FROM OpenAuction [Range 3 Minute] O, ClosedAuction [Now] C WHERE O.itemID = C.itemID;
CREATE QUERY busy AS SELECT sellerID, COUNT(*) AS n FROM OpenAuction [Range 1 Minute]
    GROUP BY sellerID;
CREATE QUERY latest AS ISTREAM SELECT * FROM ClosedAuction [Rows 1];
"""


@pytest.fixture(scope="module")
def auctions():
    return compile_script(AUCTIONS).queries


@pytest.fixture(scope="module")
def expected(auctions) -> bytes:
    return run(Replay(auctions, Path(), engine="reference"))


@pytest.mark.parametrize("tick_rows", [10, 199, 100_000])
def test_queries_of_one_file_are_merged_by_instant_then_in_their_order(
    auctions, expected, tick_rows: int
):
    lines = run(Replay(auctions, Path(), tick_rows=tick_rows))
    assert lines == expected
    order = [q.name for q in auctions]
    keys = [(e["ts"], order.index(e["query"]), e["op"] == "+") for e in entries(lines)]
    assert keys == sorted(keys)
    assert {e["query"] for e in entries(lines)} == set(order)


def test_as_a_stream_a_relation_shows_what_enters_it(auctions, tmp_path: Path):
    lines = run(Replay(auctions, tmp_path, as_stream=True))
    assert {e["op"] for e in entries(lines)} == {"+"}
    inputs = {
        s.name: list(record(open_source(s, None, tmp_path, live=False), s, tmp_path).arrivals(s))
        for s in Replay(auctions, tmp_path).streams.values()
    }
    found = printed(lines, auctions)
    for query in auctions:
        assert found[query.name] == evaluate_stream_of(query.plan, inputs)


def test_out_gets_a_file_for_each_query_and_replaces_what_was_there(
    auctions, expected, tmp_path: Path
):
    (tmp_path / "busy.jsonl").write_text("something old")
    status = replay(Replay(auctions, tmp_path), out=tmp_path)
    wanted = [e for e in entries(expected) if e["query"] == "busy"]
    assert list(entries((tmp_path / "busy.jsonl").read_bytes())) == wanted
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "busy.jsonl",
        "latest.jsonl",
        "sold.jsonl",
    ]
    assert status.rows_in == 500
    assert status.rows_out == len(expected.splitlines())


# --- interrupted


class Interrupted(Exception):
    pass


@pytest.mark.parametrize("ticks", [1, 3])
def test_an_interrupted_replay_goes_on_and_prints_the_whole(auctions, expected, tmp_path, ticks):
    def watch(status: Status) -> None:
        if status.ticks == ticks:
            raise Interrupted

    job = Replay(auctions, tmp_path, tick_rows=50, data_dir=tmp_path / "data", watch=watch)
    with pytest.raises(Interrupted):
        run(job)
    again = Replay(auctions, tmp_path, tick_rows=70, data_dir=tmp_path / "data")
    assert run(again) == expected
    assert run(again) == expected  # nothing is left to do, and all is printed again


def test_a_data_directory_belongs_to_its_script(auctions, tmp_path: Path):
    run(Replay(auctions, tmp_path, data_dir=tmp_path))
    with pytest.raises(ReplayError, match="belongs to a replay of other streams or queries"):
        run(Replay(auctions[:1], tmp_path, data_dir=tmp_path))


# --- what does not count, and what can't be replayed

ONE_FILE = "CREATE STREAM S (a INTEGER) TIMESTAMP BY ts FROM 's.csv'; SELECT * FROM S;"


def test_late_and_rejected_tuples_are_counted(tmp_path: Path):
    (tmp_path / "s.csv").write_text("a,ts\n1,5\n2,4\nx,6\n3,7\n")
    queries = compile_script(ONE_FILE).queries
    for engine in ("shared", "reference"):
        status = replay(Replay(queries, tmp_path, engine=engine), to=io.BytesIO())
        assert status.late == {"S": 1}
        assert status.rejected["S"].count == 1
        assert status.rejected["S"].first_reason == "a: 'x' is not a valid INTEGER"


def test_a_source_that_fails_while_it_is_read_ends_the_replay(tmp_path: Path):
    (tmp_path / "s.csv").write_text("b,ts\n1,5\n")
    queries = compile_script(ONE_FILE).queries
    for engine in ("shared", "reference"):
        with pytest.raises(SourceError, match=r"s\.csv has no column a") as caught:
            run(Replay(queries, tmp_path, engine=engine))
        assert caught.value.stream == "S"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"engine": "flink"}, "there is no engine flink: there are shared, native, reference"),
        ({"engine": "native"}, "the native engine runs on Spark only"),
        ({"engine": "reference", "data_dir": Path("x")}, "has no data directory"),
        ({"tick_rows": 0}, "a tick takes one tuple or more"),
    ],
)
def test_what_makes_no_sense_is_refused_at_once(options, message):
    with pytest.raises(ReplayError, match=message):
        Replay([], Path(), **options)


def test_what_native_cannot_run_is_refused_with_the_querys_name(auctions, spark: SparkSession):
    with pytest.raises(ReplayError, match="query busy: native can't run"):
        run(Replay(auctions, Path(), engine="native", spark=spark))


def test_lines_are_what_the_documentation_says(tmp_path: Path):
    (tmp_path / "s.json").write_text('{"a":1,"ts":5}\n')
    text = "CREATE STREAM S (a INTEGER) TIMESTAMP BY ts FROM 's.json'; SELECT a FROM S [Now];"
    lines = run(Replay(compile_script(text).queries, tmp_path)).decode().splitlines()
    assert [json.loads(line) for line in lines] == [
        {"query": "q1", "ts": 5, "op": "+", "row": {"a": 1}},
        {"query": "q1", "ts": 6, "op": "-", "row": {"a": 1}},
    ]
