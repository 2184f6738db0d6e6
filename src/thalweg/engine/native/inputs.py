"""Recorded input as streaming frames, with event times and watermarks that lose nothing."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema

from thalweg.engine.native.joins import EVENT, START, input_column
from thalweg.engine.native.limits import MOST_INSTANTS
from thalweg.engine.native.spj import Input, SelectProjectJoin
from thalweg.engine.native.staging import TS, Staged, arrow_schema, stage
from thalweg.engine.native.task import Settings, Task
from thalweg.engine.native.unsupported import Unsupported


def input_frames(
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
