"""An engine that is killed at a chosen point, or after a while, and can be started again.

`python crashing.py` reads scenarios as JSON lines and runs each in a fork of itself, so that what
takes long (imports) is done once. Nothing in the engine knows of this: functions are replaced in
the fork. Each answer is how the fork ended: 0, or minus the signal that killed it. A scenario given
as an argument is run on Spark, in this process.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from thalweg.cql import compile_script
from thalweg.engine.generators import make_generator
from thalweg.engine.shared import engine
from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.groups.cost_model import Sharing
from thalweg.engine.shared.ingest import landing
from thalweg.engine.shared.results import large
from thalweg.engine.shared.state import runs, segments, store
from thalweg.engine.shared.tick import commit, delivery, messages
from thalweg.engine.shared.tick.executors import Executor, InProcess
from thalweg.engine.sinks import append, parquet
from thalweg.engine.sinks.base import Sink, SinkOutlet, open_where_it_was
from thalweg.engine.sinks.csv import CsvSink
from thalweg.engine.sinks.jsonl import JsonLinesSink
from thalweg.engine.sinks.parquet import ParquetSink
from thalweg.engine.sinks.registry import open_sink
from thalweg.plan.catalog import QueryDef, StreamDef

SCRIPT = """
CREATE STREAM OpenAuction (itemID BIGINT, sellerID BIGINT, start_price DOUBLE)
    TIMESTAMP BY timestamp TIMESTAMP LATENESS 1 SECOND;
CREATE STREAM ClosedAuction (itemID BIGINT, buyerID BIGINT) TIMESTAMP BY timestamp TIMESTAMP;
CREATE QUERY sold AS SELECT O.itemID, O.start_price, C.buyerID
    FROM OpenAuction [Range 3 Minute] O, ClosedAuction [Now] C WHERE O.itemID = C.itemID;
CREATE QUERY sold_dear AS SELECT C.buyerID, O.start_price
    FROM ClosedAuction [Range 10 Second] C, OpenAuction [Range 1 Minute] O
    WHERE C.itemID = O.itemID AND O.start_price > 20;
CREATE QUERY sellers AS SELECT sellerID, COUNT(*) AS items, MAX(start_price) AS highest
    FROM OpenAuction [Range 30 Second] GROUP BY sellerID;
CREATE QUERY latest AS RSTREAM SELECT buyerID FROM ClosedAuction [Rows 2];
CREATE QUERY buyers AS SELECT DISTINCT buyerID FROM ClosedAuction [Range 1 Minute Slide 10 Second];
"""
# Comes later and wants more than the group of `sold` has: everybody moves to a wider one.
LATE_SCRIPT = """
CREATE QUERY sold_late AS SELECT O.itemID, C.buyerID
    FROM OpenAuction [Range 5 Minute] O, ClosedAuction [Range 5 Second] C
    WHERE O.itemID = C.itemID;
"""
LATE_AFTER = 2  # ticks
OPTIONS = {"rate": "200", "duration": "60", "seed": "3"}
BATCHES, ROWS = 6, {"OpenAuction": 120, "ClosedAuction": 60}


# --- what is run


def run(
    folder: Path,
    executor: Executor,
    rows_for_more_tasks: int = 0,
    topics: dict[str, str] | None = None,
    spark: Any = None,
) -> None:
    """From wherever it was to the end of both streams, a tick after each pair of batches."""
    script = compile_script(SCRIPT)
    outlet = SinkOutlet()
    running = SharedEngine(
        folder / "data",
        executor,
        outlet=outlet,
        rows_for_more_tasks=rows_for_more_tasks,
        retained_ticks=3,
        sharing=Sharing.WHEREVER_POSSIBLE,
    )
    for stream in script.catalog.streams():
        running.add_stream(stream)
    (late,) = compile_script(LATE_SCRIPT, script.catalog).queries
    sinks = partial(_topics, topics, spark) if topics else _files
    _stand(running, outlet, folder, script.queries, sinks)
    if running.store.runs.begun([late.name]):
        _stand(running, outlet, folder, [late], sinks)
    for number in range(BATCHES):
        if number == LATE_AFTER == _ticks(running) and late.name not in running.roster.queries:
            _stand(running, outlet, folder, [late], sinks)
        for stream in script.catalog.streams():
            _push(running, stream, number)
        if _ticks(running) == number:
            running.tick()
    for stream in script.catalog.streams():
        running.finish(stream.name)
    running.run_to_end()
    outlet.close()
    running.close()


def _stand(
    running: SharedEngine,
    outlet: SinkOutlet,
    folder: Path,
    queries: Sequence[QueryDef],
    sinks: Callable[[str, Path], dict[str, Sink]],
) -> None:
    running.add_queries(queries)
    for query in queries:
        for name, sink in sinks(query.name, folder).items():
            open_where_it_was(running.store, query.name, name, sink)
            outlet.attach(query.name, name, sink)


def _files(query: str, folder: Path) -> dict[str, Sink]:
    return {
        "lines": JsonLinesSink(folder / f"{query}.jsonl"),
        "tables": ParquetSink(folder / query),
        "rows": CsvSink(folder / f"{query}.csv"),
    }


def _topics(topics: dict[str, str], spark: Any, query: str, folder: Path) -> dict[str, Sink]:
    return {"topic": open_sink(topics[query], folder, spark)} if query in topics else {}


def _ticks(running: SharedEngine) -> int:
    """That have come to their end."""
    return running.store.last_committed()


def _push(running: SharedEngine, stream: StreamDef, number: int) -> None:
    """Once, however often it is tried."""
    if int(running.landing.resume_point(stream) or b"0") == number:
        batch = _batch(stream.name, number)
        running.landing.push(stream, batch, resume=str(number + 1).encode())


def _batch(stream: str, number: int) -> pl.DataFrame:
    """A batch of the generator's, with a late tuple and a poisoned one."""
    rows = ROWS[stream]
    batches: Iterator[Any] = make_generator("auctions", OPTIONS).batches(
        stream, rows, number * rows
    )
    batch = pl.from_arrow(next(batches))
    assert isinstance(batch, pl.DataFrame)
    late = batch[-1:].with_columns(pl.col("timestamp") - pl.duration(hours=1))
    poisoned = batch[:1].with_columns(pl.lit(None, dtype=pl.Datetime("us")).alias("timestamp"))
    return pl.concat([batch, late, poisoned])


# --- where it is killed


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Countdown:
    """Is due at the n-th time."""

    def __init__(self, times: int) -> None:
        self._left = times

    def __call__(self) -> bool:
        self._left -= 1
        return self._left == 0


def _replace(
    owner: Any, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]
) -> None:
    setattr(owner, name, make(getattr(owner, name)))


def _dying(owner: Any, name: str, due: Countdown, *, after: bool = False) -> None:
    """Killed when the function is called, or when it returns."""

    def make(real: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **options: Any) -> Any:
            is_due = due()
            if is_due and not after:
                die()
            result = real(*args, **options)
            if is_due:
                die()
            return result

        return wrapped

    _replace(owner, name, make)


def _around_record(due: Countdown, *, after: bool) -> None:
    def make(real: Callable[..., Any]) -> Callable[..., Any]:
        def write_tick(self: Any, number: int, record: bytes | None) -> None:
            is_due = record is not None and due()
            if is_due and not after:
                die()
            real(self, number, record)
            if is_due:
                die()

        return write_tick

    _replace(store.Store, "write_tick", make)


def _half_a_bundle(due: Countdown) -> None:
    def make(real: Callable[..., Any]) -> Callable[..., Any]:
        def add(self: Any, *args: Any) -> Any:
            segment = real(self, *args)
            if due():
                self._file.flush()
                os.truncate(self._folder.new(self.name), segment.offset + segment.size // 2)
                die()
            return segment

        return add

    _replace(segments.BundleWriter, "add", make)


def _half_a_landing(due: Countdown) -> None:
    landing.FEW = 0  # else the tuples are in the book, whose transactions have points of their own

    def make(real: Callable[..., Any]) -> Callable[..., Any]:
        def write(self: Any, frame: pl.DataFrame) -> Any:
            section = real(self, frame)
            if Path(self._folder.path).name == messages.LANDED and due():
                self._file.flush()
                os.truncate(self._folder.new(self.name), section.offset + section.size // 2)
                die()
            return section

        return write

    _replace(segments.BundleWriter, "write", make)


def _half_a_line(due: Countdown) -> None:
    def make(real: Callable[..., Any]) -> Callable[..., Any]:
        def append_(self: Any, data: Any) -> None:
            if due():
                real(self, memoryview(data)[: len(data) // 2])
                die()
            real(self, data)

        return append_

    _replace(append.AppendedFile, "append", make)


def _before_a_name(due: Countdown) -> None:
    """With the whole of a Parquet file written, under the name of a part."""

    def make(real: Callable[..., Any]) -> Callable[..., Any]:
        def rename(self: Path, target: Path) -> Path:
            if self.name.startswith(parquet.PARTIAL) and due():
                die()
            return real(self, target)

        return rename

    _replace(Path, "rename", make)


def _in_transaction(statement: str, due: Countdown, *, of_tick: bool) -> None:
    """As SQLite begins with the n-th such statement in a transaction of a tick, or of a landing."""
    in_tick = False

    def trace(text: str) -> None:
        nonlocal in_tick
        in_tick = in_tick or text.startswith("DELETE FROM frontiers")
        if text.startswith(statement) and in_tick is of_tick and due():
            die()
        in_tick = in_tick and not text.startswith("COMMIT")

    def make(real: Callable[..., Any]) -> Callable[..., Any]:
        def init(self: Any, *args: Any, **options: Any) -> None:
            real(self, *args, **options)
            self._db.set_trace_callback(trace)

        return init

    _replace(store.Store, "__init__", make)


POINTS: dict[str, Callable[[Countdown], None]] = {
    "before groups are changed": lambda due: _dying(engine, "regroup", due),
    "in the middle of a move": lambda due: _dying(runs.Runs, "join", due, after=True),
    "after groups are changed": lambda due: _dying(engine, "regroup", due, after=True),
    "before the tick's record": lambda due: _around_record(due, after=False),
    "after the record, before the tasks": lambda due: _around_record(due, after=True),
    "in a segment write": _half_a_bundle,
    "after a task's bundle": lambda due: _dying(segments.BundleWriter, "close", due, after=True),
    "between tasks and sinks": lambda due: _dying(delivery.Delivery, "__call__", due),
    "in the middle of a line": _half_a_line,
    "between two sinks": lambda due: _dying(append.AppendedFile, "append", due, after=True),
    "before a Parquet file has its name": _before_a_name,
    "between sinks and commit": lambda due: _dying(commit.Commit, "__call__", due),
    "in the middle of the commit": lambda due: _in_transaction(
        "INSERT INTO frontiers", due, of_tick=True
    ),
    "at the end of the commit": lambda due: _in_transaction("COMMIT", due, of_tick=True),
    "after the commit, before files go": lambda due: _dying(Path, "unlink", due),
    "in the landing of a batch": _half_a_landing,
    "between a landed file and its entry": lambda due: _dying(landing._Group, "list_all", due),
    "at the end of a landing": lambda due: _in_transaction("COMMIT", due, of_tick=False),
    "with a part encoded": lambda due: _dying(large, "_do", due, after=True),
    "between two parts": lambda due: _dying(append.AppendedFile, "append_file", due, after=True),
    "in the rejects": lambda due: _dying(landing, "set_aside", due, after=True),
}


OF_LARGE_RESULTS = ("with a part encoded", "between two parts")
OF_KAFKA = {
    "with all parts encoded, before records": lambda due: _around_records(due, after=False),
    "with records, before the commit": lambda due: _around_records(due, after=True),
}


def _around_records(due: Countdown, *, after: bool) -> None:
    from thalweg.engine.sinks.kafka import KafkaSink

    _dying(KafkaSink, "_send", due, after=after)


def scenario(
    folder: str,
    point: str | None = None,
    times: int = 1,
    after_s: float = 0,
    is_large: bool = False,
) -> None:
    """`is_large`: every result is large, and made in parts by tasks."""
    if is_large:
        delivery.LARGE, large.A_PART = 1, 7
    if point is not None:
        POINTS[point](Countdown(times))
    if after_s:
        signal.setitimer(signal.ITIMER_REAL, after_s)  # SIGALRM kills like SIGKILL: unhandled
    run(Path(folder), InProcess(2))


def scenario_on_spark(
    folder: str,
    point: str | None = None,
    times: int = 1,
    rows_for_more_tasks: int = 0,
    topics: dict[str, str] | None = None,
) -> None:
    """With topics, by query, all results are large, and go to Kafka only."""
    from thalweg.engine.session import spark_session
    from thalweg.engine.shared.tick.executors import OnResidents

    with spark_session("local[2]") as spark:
        if topics:
            delivery.LARGE, large.A_PART = 1, 40
        if point is not None:
            {**POINTS, **OF_KAFKA}[point](Countdown(times))
        run(Path(folder), OnResidents(spark.sparkContext), rows_for_more_tasks, topics, spark)


def serve() -> None:
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                scenario(**json.loads(line))
                code = 0
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        scenario_on_spark(**json.loads(sys.argv[1]))
    else:
        serve()
