"""A folder or a pattern whose files become more, followed by Structured Streaming."""

from __future__ import annotations

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.types import StringType, StructField, StructType

from thalweg.engine.sources.feed import Feed
from thalweg.engine.sources.files.locate import Place
from thalweg.engine.sources.files.on_spark import BYTES_PER_JOB, SparkReader, literally
from thalweg.engine.sources.files.source import FileProgress, FileSource
from thalweg.engine.sources.staging import LINE

_LOOK_S = 0.25
_TEXT = StructType([StructField(LINE, StringType())])


class WatchedFiles:
    """Takes each file once, also across restarts. Never ends.

    Files must appear whole: written elsewhere, or under a hidden name, and renamed.
    """

    def __init__(self, source: FileSource, place: Place, reader: SparkReader) -> None:
        self._source, self._place, self._reader = source, place, reader

    def run(self, feed: Feed) -> None:
        while not self._place.files():  # Parquet's columns are known from its first file
            if feed.wait(_LOOK_S):
                return

        def take(frame: DataFrame, batch: int) -> None:
            """After a crash Spark repeats a batch with the same files: some rows may be known."""
            last = _last(feed)
            done = last if last is not None and last.batch == batch else None
            for part in self._reader.parts_of(frame, feed.folder / "pieces"):
                self._source.deliver(feed, part, done, batch=batch)

        writer = self._frame().writeStream.foreachBatch(take)
        writer = writer.option("checkpointLocation", str(feed.folder / "checkpoint"))
        query = writer.trigger(processingTime=f"{int(_LOOK_S * 1000)} milliseconds").start()
        try:
            while not feed.wait(_LOOK_S):
                raise_if_failed(query)
        finally:
            query.stop()

    def _frame(self) -> DataFrame:
        is_parquet = self._reader.form == "parquet"
        # Files that were written long ago count when they appear, however old they look.
        options = {"maxBytesPerTrigger": str(BYTES_PER_JOB), "maxFileAge": "36500d"}
        if any(self._place.endings):
            options["pathGlobFilter"] = f"*{{{','.join(self._place.endings)}}}"
        schema = self._reader.columns_in(self._place.files()[0]) if is_parquet else _TEXT
        reader = self._reader.session.readStream.schema(schema).options(**options)
        path = literally(self._place.path)
        return self._reader.read(
            reader, f"{path}/{self._place.pattern}" if self._place.pattern else path
        )


def _last(feed: Feed) -> FileProgress | None:
    found = feed.resume_point()
    return None if found is None else msgspec.json.decode(found, type=FileProgress)


def raise_if_failed(query: StreamingQuery) -> None:
    """A streaming query fails on a thread of its own."""
    error = query.exception()
    if error is not None:
        raise error
