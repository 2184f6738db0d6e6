"""Bounded replays on plain Structured Streaming, and their changelogs.

The joins run as streaming queries in append mode and write interval rows: (start, end, row). What
a changelog needs on top, +1 at each start and -1 at each end netted per instant and row, Spark
can't do in the same streaming query: the instants are computed from the join's output, and Spark
does not let a query set a watermark anew ("Redefining watermark is disallowed"), without which an
aggregate in append mode never emits. So it is one batch aggregate at the end of the replay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from itertools import islice
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming import StreamingQuery

from thalweg.engine.changelog import Change
from thalweg.engine.native.inputs import input_frames
from thalweg.engine.native.joins import interval_rows
from thalweg.engine.native.limits import check
from thalweg.engine.native.netting import QUERY, clipped, in_slots, netted_changes
from thalweg.engine.native.spj import SelectProjectJoin
from thalweg.engine.native.staging import Source
from thalweg.engine.native.task import Settings, Task
from thalweg.plan.catalog import QueryDef


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
        frames = input_frames(session, task, query, folder / f"query-{number}", settings)
        rows = clipped(interval_rows(query, frames), task.start)
        parts.append(in_slots(rows, query).withColumn(QUERY, F.lit(number)))
    together = reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), parts)
    _stream_to_parquet(together, folder)
    intervals = session.read.schema(together.schema).parquet(str(folder / "intervals"))
    queries = {number: query for number, (_, query) in job}
    return list(netted_changes(intervals, queries).values())


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
