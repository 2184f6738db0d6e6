"""One query on plain Structured Streaming, fed live.

Positions are kept in names of files, since a batch of Spark's is what its file source happens to
see, and says nothing of instants:

| where | what |
|---|---|
| `in-0/000000000012-4711.parquet` | input 0: all that came up to instant 4711; gone once computed |
| `out/00000012.parquet` | what batch 12 gave: rows with intervals; a repeated batch replaces it |
| `checkpoint/` | Spark's own: which files it has seen, and its state |
| `done.json` | up to which instant each input is computed |

Feeding and computing take turns: Spark is asked whether it has seen all files that there are, which
it never has while more come.

A tuple that joins is given out in the batch that sees it, so that after a batch all is known below
the least instant that its inputs have come to. Behind the tuples of a file stands a row that counts
for the watermark only: it says up to which instant the file is complete, so that Spark can let go
of state although a stream is silent, and never takes a tuple for late.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming import StreamingQuery

from thalweg.engine.native.joins import EVENT, START, input_column, interval_rows
from thalweg.engine.native.limits import check
from thalweg.engine.native.staging import TS as TUPLE_TS
from thalweg.engine.native.staging import arrow_schema
from thalweg.engine.pieces import Piece
from thalweg.engine.shared.frames import dtype, name
from thalweg.engine.wrappers.interface import EngineError
from thalweg.engine.wrappers.intervals import Intervals
from thalweg.plan.catalog import PLACE, StreamDef
from thalweg.plan.nodes import Node
from thalweg.plan.windows import BEGINNING

log = logging.getLogger(__name__)

# Spark's first watermark is the epoch, and event times are microseconds in 64 bits: instants are
# counted from far before it, and those that still do not fit are refused by name.
SHIFT = 1 << 50
FIRST, LAST = 1 - SHIFT, SHIFT - 1
_MARK = "mark"  # whether a row only counts for the watermark
_INSTANT = PLACE[0].name
_ROUND_WITHIN_S = 30.0
_RETRIES_S = (0.5, 1.0, 2.0, 5.0)
_BROKEN, _DONE = "broken", "done.json"


class NativeQuery:
    """Runs on threads of its own until it is closed; `changed` is called when it has said more."""

    def __init__(
        self,
        folder: Path,
        plan: Node,
        begins: int | None,
        spark: SparkSession,
        changed: Callable[[], None],
    ) -> None:
        self._folder, self._spark, self._changed = folder, spark, changed
        self._query = check(plan)
        columns = {name(i): dtype(f.type) for i, f in enumerate(plan.schema)}
        self._intervals = Intervals(columns, begins, is_stream=self._query.is_stream)
        self._lock, self._turn = threading.Lock(), threading.Lock()
        self._more, self._closed = threading.Event(), threading.Event()
        self.seconds, self._counted = 0.0, -1
        for number in range(len(self._query.inputs)):
            self._inbox(number).mkdir(parents=True, exist_ok=True)
        self._outbox.mkdir(exist_ok=True)
        for file in sorted(self._outbox.glob("*.parquet")):
            self._put(int(file.stem), pq.read_table(file))
        self._done, self._places = self._read_done()
        self._fed = list(self._done)
        for number in range(len(self._done)):
            for file in self._inbox(number).glob("*.parquet"):
                place, _, upto = file.stem.partition("-")
                self._fed[number] = max(self._fed[number], int(upto))
                self._places[number] = max(self._places[number], int(place) + 1)
        self._running: StreamingQuery | None = None
        self._thread = threading.Thread(target=self._run, name=f"native-{folder.name}", daemon=True)
        self._more.set()  # what a crash has left
        self._thread.start()

    def stop(self) -> None:
        """Without waiting for the end."""
        self._closed.set()
        self._more.set()

    def close(self) -> None:
        self.stop()
        # Spark, once stopped, would leave who waits for it waiting: the round comes to its end.
        self._thread.join(_ROUND_WITHIN_S)
        if (running := self._running) is not None:
            running.stop()

    def remove(self) -> None:
        self.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    # --- what comes in

    def fed(self, stream: str) -> int:
        with self._lock:
            return min(self._fed[n] for n in self._inputs_of(stream))

    def feed(self, stream: str, piece: Piece) -> None:
        with self._turn:
            for number in self._inputs_of(stream):
                known = self._fed[number]
                if piece.upto <= known:
                    continue
                if piece.low > known:
                    raise EngineError(f"{stream}: nothing was fed from {known} to {piece.low}")
                fresh = piece.rows
                if known > BEGINNING:  # the first piece also brings what is older
                    fresh = fresh.filter(pl.col(_INSTANT) >= known)
                self._write(number, fresh, piece.upto)
                with self._lock:
                    self._fed[number] = piece.upto

    def _inputs_of(self, stream: str) -> list[int]:
        """A stream that is joined with itself is several inputs."""
        return [n for n, i in enumerate(self._query.inputs) if i.stream.name == stream]

    def _write(self, number: int, rows: pl.DataFrame, upto: int) -> None:
        of = self._query.inputs[number].stream
        instants = rows[_INSTANT]
        if rows.height and not FIRST <= instants.min() <= instants.max() <= LAST:  # type: ignore[operator]
            self._break(f"{of.name} has instants beyond {LAST}, where Spark's timestamps end")
        tuples = rows.select(
            pl.col(_INSTANT).alias(TUPLE_TS),
            *(pl.col(f.name).cast(dtype(f.type)).alias(name(i)) for i, f in enumerate(of.fields)),
            pl.lit(False).alias(_MARK),
        )
        mark = pl.DataFrame(
            {TUPLE_TS: [max(FIRST, min(upto - 1, LAST))], _MARK: [True]},
            schema={TUPLE_TS: pl.Int64, _MARK: pl.Boolean},
        )
        whole = pl.concat([tuples, mark], how="diagonal").to_arrow().cast(_file_schema(of))
        place = self._places[number]
        self._places[number] += 1
        # Spark takes files in order of their times, and passes over those that are a week older.
        file = self._inbox(number) / f"{place:012d}-{upto}.parquet"
        _write_durably(file, whole, 1_000_000_000 + place)

    # --- what goes out

    @property
    def frontier(self) -> int:
        with self._lock:
            return min(self._done)

    def publish(self, since: int) -> Iterator[Piece]:
        broken = self._folder / _BROKEN
        if broken.exists():
            raise EngineError(broken.read_text())
        self._more.set()  # so that what was fed together is computed together
        upto = self.frontier
        if upto > since:
            yield Piece(since, upto, self._intervals.changes(since, upto))

    def forget(self, below: int) -> None:
        for number in self._intervals.forget(min(below, self.frontier)):
            self._out(number).unlink(missing_ok=True)

    # --- Spark

    def _run(self) -> None:
        failures = 0
        while not self._closed.is_set():
            try:
                self._more.wait()
                self._more.clear()
                if self._closed.is_set():
                    return
                if self._running is None or not self._running.isActive:
                    self._running = self._start()
                self._compute(self._running)
                failures = 0
            except Exception as error:  # of many kinds; Spark's checkpoint knows where it was
                if self._closed.is_set():
                    return
                log.warning("native query in %s failed: %s", self._folder, error)
                self._closed.wait(_RETRIES_S[min(failures, len(_RETRIES_S) - 1)])
                failures += 1
                self._more.set()

    def _compute(self, running: StreamingQuery) -> None:
        with self._turn:
            if self._fed == self._done:
                return
            running.processAllAvailable()
            self._account(running)
            self._write_done()
            with self._lock:
                self._done = list(self._fed)
            for number in range(len(self._done)):
                for file in self._inbox(number).glob("*.parquet"):
                    file.unlink()
        self._changed()

    def _account(self, running: StreamingQuery) -> None:
        for progress in running.recentProgress:
            if progress["batchId"] <= self._counted:
                continue
            self._counted = progress["batchId"]
            self.seconds += progress["durationMs"].get("triggerExecution", 0) / 1000
            dropped = sum(o["numRowsDroppedByWatermark"] for o in progress["stateOperators"])
            if dropped:
                self._break(f"Spark dropped {dropped} rows as late: it would not be exact")

    def _break(self, why: str) -> None:
        """Nothing more is said: it could be wrong."""
        (self._folder / _BROKEN).write_text(why)
        raise EngineError(why)

    def _start(self) -> StreamingQuery:
        session = self._spark.newSession()
        session.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "false")
        # How often it looks for files while it waits; every look costs, with every query.
        session.conf.set("spark.sql.streaming.pollingDelay", "50ms")
        tasks = session.sparkContext.defaultParallelism
        session.conf.set("spark.sql.shuffle.partitions", str(tasks))
        frames = [self._read(session, n) for n in range(len(self._query.inputs))]
        rows = interval_rows(self._query, frames)
        writer = rows.writeStream.foreachBatch(self._take).outputMode("append")
        writer = writer.option("checkpointLocation", str(self._folder / "checkpoint"))
        return writer.start()

    def _read(self, session: SparkSession, number: int) -> DataFrame:
        stream = self._query.inputs[number].stream
        reader = session.readStream.schema(from_arrow_schema(_file_schema(stream)))
        frame = reader.parquet(str(self._inbox(number)))
        columns = [F.col(name(i)).alias(input_column(number, i)) for i in range(len(stream.fields))]
        event = F.timestamp_millis(F.col(TUPLE_TS) + F.lit(SHIFT)).alias(EVENT)
        frame = frame.select(F.col(TUPLE_TS).alias(START), *columns, F.col(_MARK), event)
        # The mark is at the last instant of its file, and all tuples of later files are behind it.
        frame = frame.withWatermark(EVENT, "0 milliseconds")
        # Said of the event time, too, or the optimizer would take marks out below the watermark.
        return frame.filter(F.when(~F.col(_MARK), F.col(EVENT)).isNotNull()).drop(_MARK)

    def _take(self, rows: DataFrame, batch: int) -> None:
        found = rows.toArrow()
        if found.num_rows or self._out(batch).exists():
            _write_durably(self._out(batch), found)
        self._put(batch, found)

    def _put(self, batch: int, found: pa.Table) -> None:
        rows = pl.from_arrow(found)
        assert isinstance(rows, pl.DataFrame)
        outputs = [
            pl.col(f"o{i}").cast(dtype(o.type)).alias(name(i))
            for i, o in enumerate(self._query.outputs)
        ]
        self._intervals.put(batch, rows.select("start", "end", *outputs))

    # --- files

    def _inbox(self, number: int) -> Path:
        return self._folder / f"in-{number}"

    @property
    def _outbox(self) -> Path:
        return self._folder / "out"

    def _out(self, batch: int) -> Path:
        return self._outbox / f"{batch:08d}.parquet"

    def _read_done(self) -> tuple[list[int], list[int]]:
        """How far inputs are computed, and the numbers of their next files."""
        try:
            kept = json.loads((self._folder / _DONE).read_text())
        except FileNotFoundError:
            inputs = len(self._query.inputs)
            return [BEGINNING] * inputs, [0] * inputs
        return kept["upto"], kept["files"]

    def _write_done(self) -> None:
        part = self._folder / f".{_DONE}"
        with part.open("w") as file:
            json.dump({"upto": self._fed, "files": self._places}, file)
            file.flush()
            os.fsync(file.fileno())
        part.replace(self._folder / _DONE)


def _file_schema(stream: StreamDef) -> pa.Schema:
    return arrow_schema(stream).append(pa.field(_MARK, pa.bool_()))


def _write_durably(path: Path, table: pa.Table, stamp: int | None = None) -> None:
    """There as a whole, or not at all."""
    part = path.with_name(f".{path.name}")
    with part.open("wb") as file:
        pq.write_table(table, file)
        file.flush()
        os.fsync(file.fileno())
    if stamp is not None:
        os.utime(part, (stamp, stamp))
    part.replace(path)
