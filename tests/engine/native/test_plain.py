import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from thalweg.cql import compile_script
from thalweg.engine import native
from thalweg.engine.generators import make_generator, write_files
from thalweg.engine.sources.recording import Recording
from thalweg.plan.nodes import base_streams

SCRIPT = """
CREATE STREAM OpenAuction (itemID BIGINT, sellerID BIGINT, start_price DOUBLE, timestamp TIMESTAMP)
    TIMESTAMP BY timestamp FROM 'files';
CREATE STREAM ClosedAuction (itemID BIGINT, buyerID BIGINT, timestamp TIMESTAMP)
    TIMESTAMP BY timestamp FROM 'files';
CREATE QUERY closed AS
    SELECT ISTREAM O.itemID, O.sellerID, C.buyerID, O.timestamp, C.timestamp
    FROM OpenAuction [Range 5 Minute] O, ClosedAuction [Now] C WHERE O.itemID = C.itemID;
"""
STREAMS = ("OpenAuction", "ClosedAuction")


@pytest.fixture(scope="module")
def query():
    return compile_script(SCRIPT).queries[0]


@pytest.fixture(scope="module")
def auctions():
    return make_generator("auctions", {"limit": "6000", "rate": "100", "duration": "120"})


@pytest.fixture(scope="module")
def folders(auctions, tmp_path_factory):
    folder = tmp_path_factory.mktemp("auctions")
    for stream in STREAMS:
        write_files(auctions, stream, folder / stream, 1500)
    return {stream: folder / stream for stream in STREAMS}


@pytest.fixture(scope="module")
def exact(spark, query, auctions, tmp_path_factory) -> list[tuple]:
    folder = tmp_path_factory.mktemp("exact")
    recordings = {stream: _recorded(auctions, stream, query, folder) for stream in STREAMS}
    changes = native.run(spark, [query], recordings, folder / "out")["closed"]
    return sorted((change.ts, change.row) for change in changes)


def _recorded(auctions, stream, query, folder) -> Recording:
    (definition,) = [s for s in base_streams(query.plan) if s.name == stream]
    recording = Recording(folder)
    for batch in auctions.batches(stream, 2000):
        recording.push(definition, pl.from_arrow(batch))
    return recording


@pytest.mark.timeout(300)
@pytest.mark.parametrize("state_store", ["memory", "rocksdb"])
def test_plain_rows_are_those_of_the_exact_replay(
    state_store, spark, tmp_path, query, folders, exact
):
    measured = native.measure(spark, query.plan, folders, tmp_path, state_store=state_store)
    rows = spark.read.parquet(str(tmp_path / "rows")).collect()
    assert sorted((row[0], tuple(row)[1:]) for row in rows) == exact
    assert measured.rows_out == len(exact) > 3000
    assert measured.events == 12_000
    assert measured.events_per_second > 0
    # Spark kept the window, not the whole stream.
    assert 0 < measured.state_rows < 8000
    assert measured.state_memory_bytes > 0
    assert measured.checkpoint_bytes > 0


@pytest.mark.parametrize(
    ("declared", "stamps", "instants"),
    [
        ("BIGINT", pa.array([5, 7], pa.int64()), [5, 7]),
        ("DATE", pa.array([1, 3], pa.date32()), [1, 3]),
        ("TIMESTAMP", pa.array([86_400_000_001, 3 * 86_400_000_000], pa.timestamp("us")), [1, 3]),
    ],
)
def test_instants_count_in_the_streams_resolution(declared, stamps, instants, spark, tmp_path):
    """The timestamp need not be part of the tuple."""
    script = f"""
        CREATE STREAM S (a BIGINT) TIMESTAMP BY at {declared} RESOLUTION 1 DAY FROM 'files';
        CREATE QUERY q AS SELECT ISTREAM a FROM S [Now];
    """
    (tmp_path / "S").mkdir()
    pq.write_table(pa.table({"at": stamps, "a": [10, 20]}), tmp_path / "S" / "0.parquet")
    plan = compile_script(script).queries[0].plan
    measured = native.measure(spark, plan, {"S": tmp_path / "S"}, tmp_path / "out")
    rows = spark.read.parquet(str(tmp_path / "out" / "rows")).collect()
    assert sorted(map(tuple, rows)) == list(zip(instants, [10, 20], strict=True))
    assert (measured.events, measured.state_rows) == (2, 0)


def test_tuples_of_the_epoch_and_before_it_count(spark, tmp_path):
    """Spark starts with a watermark at the epoch, under which the first of these would be late."""
    script = compile_script("""
        CREATE STREAM A (k BIGINT) TIMESTAMP BY ts BIGINT;
        CREATE STREAM B (k BIGINT) TIMESTAMP BY ts BIGINT;
        CREATE QUERY met AS SELECT ISTREAM A.k FROM A [Range 10], B [Now] WHERE A.k = B.k;
    """)
    for stream, shift in (("A", 0), ("B", 5)):
        stamps = [-20, 0, 20]
        table = pa.table({"ts": [s + shift for s in stamps], "k": [1, 2, 3]})
        (tmp_path / stream).mkdir()
        pq.write_table(table, tmp_path / stream / "0.parquet")
    folders = {stream: tmp_path / stream for stream in "AB"}
    measured = native.measure(spark, script.queries[0].plan, folders, tmp_path / "out")
    assert measured.rows_out == 3
