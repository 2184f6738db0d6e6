"""A folder or a pattern whose files become more: Structured Streaming finds them, each once."""

from __future__ import annotations

from pathlib import Path

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from thalweg.engine.sources.feed import Feed
from thalweg.engine.sources.files.locate import File, Place, literally, natural_key, plain_path
from thalweg.engine.sources.files.progress import FileProgress
from thalweg.engine.sources.files.source import FileSource

_LOOK_S = 0.25
# Spark's source of whole files; a file's content is only read by those who ask for it.
_FILES = "path STRING, modificationTime TIMESTAMP, length BIGINT, content BINARY"


class WatchedFiles:
    """Takes each file once, also across restarts. Never ends.

    Files must appear whole: written elsewhere, or under a hidden name, and renamed.
    """

    def __init__(self, source: FileSource, place: Place, spark: SparkSession) -> None:
        self._source, self._place, self._session = source, place, spark.newSession()
        self._taken: dict[str, int] = {}  # how large files were when they were read

    def run(self, feed: Feed) -> None:
        def take(found: DataFrame, batch: int) -> None:
            """After a crash Spark repeats a batch with the same files: some rows may be known."""
            files = [File(plain_path(row.path), row.length) for row in found.collect()]
            for file in files:
                self._place.check(file.path)
            last = _last(feed)
            done = last if last is not None and last.batch == batch else None
            self._taken |= {file.path: file.size for file in files}
            ordered = sorted(files, key=lambda file: natural_key(file.path))
            self._source.read(feed, ordered, done, batch=batch)

        writer = self._found().writeStream.foreachBatch(take)
        writer = writer.option("checkpointLocation", str(feed.folder / "checkpoint"))
        query = writer.trigger(processingTime=f"{int(_LOOK_S * 1000)} milliseconds").start()
        try:
            while not feed.wait(_LOOK_S):
                raise_if_failed(query)
                self._tell_growth(feed)
        finally:
            query.stop()

    def _tell_growth(self, feed: Feed) -> None:
        """A file is read once: what is appended to it later is lost, and nobody should wonder."""
        for path, size in list(self._taken.items()):
            try:
                now = Path(path).stat().st_size
            except OSError:
                continue  # what is gone was read
            if now > size:
                self._taken[path] = now
                feed.warn(
                    f"{path} has grown by {now - size} bytes after it was read, and they do not "
                    "count: each file of a watched folder is read once. Write new files, or read "
                    "this one alone with OPTIONS (watch 'true')"
                )

    def _found(self) -> DataFrame:
        # Files that were written long ago count when they appear, however old they look.
        options = {"maxFileAge": "36500d"}
        if any(self._place.endings):
            options["pathGlobFilter"] = f"*{{{','.join(self._place.endings)}}}"
        path = literally(self._place.path)
        if self._place.pattern is not None:
            path = f"{path}/{self._place.pattern}"
        reader = self._session.readStream.format("binaryFile").schema(_FILES)
        return reader.options(**options).load(path).select("path", "length")


def _last(feed: Feed) -> FileProgress | None:
    found = feed.resume_point()
    return None if found is None else msgspec.json.decode(found, type=FileProgress)


def raise_if_failed(query: StreamingQuery) -> None:
    """A streaming query fails on a thread of its own."""
    error = query.exception()
    if error is not None:
        raise error
