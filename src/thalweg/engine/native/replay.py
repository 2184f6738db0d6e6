"""Bounded replays on plain Structured Streaming, and their changelogs.

The joins run as streaming queries in append mode and write interval rows: (start, end, row). What
a changelog needs on top, +1 at each start and -1 at each end netted per instant and row, Spark
can't do in the same streaming query: the instants are computed from the join's output, and Spark
does not let a query set a watermark anew ("Redefining watermark is disallowed"), without which an
aggregate in append mode never emits. So it is one batch aggregate at the end of the replay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import islice
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming import StreamingQuery

from thalweg.engine.changelog import Change, in_order
from thalweg.engine.native.joins import END, EVENT, START, input_column, interval_rows
from thalweg.engine.native.spj import Input, SelectProjectJoin, flatten
from thalweg.engine.native.staging import TS, Source, Staged, arrow_schema, stage
from thalweg.engine.native.types import spark_type
from thalweg.engine.native.unsupported import Unsupported
from thalweg.plan.catalog import QueryDef
from thalweg.plan.nodes import Node
from thalweg.plan.windows import FOREVER

# An instant is a millisecond of event time, and Spark counts event time in microseconds.
MOST_INSTANTS = (1 << 63) // 1000 // 4


@dataclass(frozen=True, slots=True)
class Task:
    """A plan and its recorded inputs by stream name; options as the reference has them."""

    plan: Node
    sources: Mapping[str, Source]
    horizons: Mapping[str, int] | None = None
    start: int | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """`queries_per_job` above 1 puts several queries into one streaming query, which saves
    start-up time and delays the dropping of state, since they share one watermark."""

    files_per_trigger: int = 1
    rows_per_file: int = 250_000
    queries_per_job: int = 1
    partitions: int | None = None  # of the state; None takes the session's


def check(plan: Node) -> SelectProjectJoin:
    """The plan in this engine's form; raises Unsupported before anything runs."""
    query = flatten(plan)
    for source in query.inputs:
        if source.length is not None and source.length >= MOST_INSTANTS:
            raise Unsupported(
                f"a window of {source.length} instants", "Spark's timestamps do not reach that far"
            )
    return query


def run(
    spark: SparkSession,
    queries: Iterable[QueryDef],
    sources: Mapping[str, Source],
    out: Path | str,
    settings: Settings = Settings(),  # noqa: B008 (frozen)
) -> dict[str, list[Change]]:
    """What each query prints: a relation's changelog, or a stream's tuples as `+`.

    Recorded sources, checkpoints and interval rows are left in the folder `out`.
    """
    queries = list(queries)
    tasks = [Task(query.plan, sources) for query in queries]
    changes = run_tasks(spark, tasks, out, settings)
    return {query.name: found for query, found in zip(queries, changes, strict=True)}


def run_tasks(
    spark: SparkSession, tasks: Sequence[Task], out: Path | str, settings: Settings
) -> list[list[Change]]:
    checked = [(task, check(task.plan)) for task in tasks]
    session = _session(spark, settings)
    remaining = iter(enumerate(checked))
    changes: list[list[Change]] = []
    while job := list(islice(remaining, settings.queries_per_job)):
        changes += _run_job(session, job, Path(out) / f"job-{job[0][0]}", settings)
    return changes


def _session(spark: SparkSession, settings: Settings) -> SparkSession:
    """A session of its own for what only streaming queries of this engine need."""
    session = spark.newSession()
    session.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "false")
    session.conf.set("spark.sql.streaming.numRecentProgressUpdates", "1000000")
    partitions = settings.partitions or spark.conf.get("spark.sql.shuffle.partitions")
    session.conf.set("spark.sql.shuffle.partitions", str(partitions))
    return session


def _run_job(
    session: SparkSession,
    job: Sequence[tuple[int, tuple[Task, SelectProjectJoin]]],
    folder: Path,
    settings: Settings,
) -> list[list[Change]]:
    parts = []
    for number, (task, query) in job:
        frames = _input_frames(session, task, query, folder / f"query-{number}", settings)
        rows = _clipped(interval_rows(query, frames), task.start)
        parts.append(_in_slots(rows, query).withColumn("query", F.lit(number)))
    together = reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), parts)
    _stream_to_parquet(together, folder)
    intervals = session.read.schema(together.schema).parquet(str(folder / "intervals"))
    return _changes(intervals, job)


# --- inputs -------------------------------------------------------------------------------------


def _input_frames(
    session: SparkSession,
    task: Task,
    query: SelectProjectJoin,
    folder: Path,
    settings: Settings,
) -> list[DataFrame]:
    sources = {name.lower(): source for name, source in task.sources.items()}
    horizons = {name.lower(): h for name, h in (task.horizons or {}).items()}
    staged: dict[str, Staged] = {}
    for source in query.inputs:
        name = source.stream.name.lower()
        if name not in sources:
            raise ValueError(f"no recorded source is given for {source.stream.name}")
        if name not in staged:
            staged[name] = stage(
                source.stream,
                sources[name],
                folder / name,
                settings.rows_per_file,
                horizons.get(name),
            )
    origin = _origin(staged.values())
    return [
        _read(session, number, source, staged[source.stream.name.lower()], origin, settings)
        for number, source in enumerate(query.inputs)
    ]


def _origin(staged: Iterable[Staged]) -> int:
    """The instant at which event time starts: Spark's first watermark is 0, and all are above."""
    inputs = [s for s in staged if s.first is not None]
    first = min((s.first for s in inputs if s.first is not None), default=0)
    if any(s.newest - first >= MOST_INSTANTS for s in inputs):
        raise Unsupported("streams over so long a time", "Spark's timestamps do not reach that far")
    return first - 1


def _read(
    session: SparkSession,
    number: int,
    source: Input,
    staged: Staged,
    origin: int,
    settings: Settings,
) -> DataFrame:
    schema = from_arrow_schema(arrow_schema(source.stream))
    reader = session.readStream.schema(schema)
    reader = reader.option("maxFilesPerTrigger", settings.files_per_trigger)
    frame = reader.parquet(str(staged.folder))
    columns = [
        F.col(f"c{i}").alias(input_column(number, i)) for i in range(len(source.stream.fields))
    ]
    event = F.timestamp_millis(F.col(TS) - F.lit(origin)).alias(EVENT)
    # Spark calls a row late that is at its watermark, not only below: so one instant more.
    delay = f"{staged.disorder + 1} milliseconds"
    return frame.select(F.col(TS).alias(START), *columns, event).withWatermark(EVENT, delay)


# --- outputs ------------------------------------------------------------------------------------


def _clipped(rows: DataFrame, start: int | None) -> DataFrame:
    """A query submitted at `start` has an empty relation before."""
    if start is None:
        return rows
    begin = F.greatest(F.col(START), F.lit(start))
    return rows.withColumn(START, begin).filter(F.col(START) < F.col(END))


def _slots(query: SelectProjectJoin) -> list[str]:
    """Output columns named by type and number, so that rows of different queries fit one file."""
    seen: dict[str, int] = {}
    names = []
    for output in query.outputs:
        kind = spark_type(output.type).simpleString().translate(str.maketrans("(,)", "___"))
        seen[kind] = seen.get(kind, 0) + 1
        names.append(f"{kind}_{seen[kind]}")
    return names


def _in_slots(rows: DataFrame, query: SelectProjectJoin) -> DataFrame:
    outputs = [
        F.col(f"o{position}").cast(spark_type(output.type)).alias(slot)
        for position, (output, slot) in enumerate(zip(query.outputs, _slots(query), strict=True))
    ]
    return rows.select(START, END, *outputs)


def _stream_to_parquet(rows: DataFrame, folder: Path) -> None:
    writer = rows.writeStream.format("parquet").outputMode("append")
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    running = writer.trigger(availableNow=True).start(str(folder / "intervals"))
    try:
        running.awaitTermination()
    finally:
        running.stop()
    _demand_nothing_dropped(running)


def _demand_nothing_dropped(done: StreamingQuery) -> None:
    dropped = sum(
        operator["numRowsDroppedByWatermark"]
        for progress in done.recentProgress
        for operator in progress["stateOperators"]
    )
    if dropped:
        raise RuntimeError(f"Spark dropped {dropped} rows as late: the result would not be exact")


def _changes(
    intervals: DataFrame, job: Sequence[tuple[int, tuple[Task, SelectProjectJoin]]]
) -> list[list[Change]]:
    """+1 at each start and -1 at each end, netted per query, instant and row."""
    row = [name for name in intervals.columns if name not in (START, END)]
    entered = intervals.select(F.col(START).alias(TS), *row, F.lit(1).alias("weight"))
    left = intervals.filter(F.col(END) != FOREVER)
    left = left.select(F.col(END).alias(TS), *row, F.lit(-1).alias("weight"))
    netted = entered.unionAll(left).groupBy(TS, *row).agg(F.sum("weight").alias("weight"))
    found: dict[int, list[Change]] = {number: [] for number, _ in job}
    queries = {number: query for number, (_, query) in job}
    slots = {number: _slots(query) for number, query in queries.items()}
    for change in netted.filter("weight <> 0").toLocalIterator():
        number = change["query"]
        if queries[number].is_stream and change["weight"] < 0:
            continue
        values = tuple(change[slot] for slot in slots[number])
        op = "+" if change["weight"] > 0 else "-"
        found[number] += [Change(change[TS], op, values)] * abs(change["weight"])
    return [in_order(changes) for changes in found.values()]
