"""An engine to land in, and what has landed: for the tests of sources."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import polars as pl

from thalweg.cql import compile_script
from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.frames import FOREVER, names
from thalweg.engine.shared.ingest.waiting import waiting
from thalweg.engine.shared.state.names import REJECTED, side_file
from thalweg.engine.sources import Feed, Source
from thalweg.plan.catalog import StreamDef


def stream_of(statement: str) -> StreamDef:
    (stream,) = compile_script(statement + ";").catalog.streams()
    return stream


class Landed:
    """A data directory that only takes in; opening it again is a restart."""

    def __init__(
        self, folder: Path, stream: StreamDef, *, objects: str = "", **options: Any
    ) -> None:
        self.stream = stream
        self.engine = SharedEngine(folder, durable=False, objects=objects)
        self.engine.add_stream(stream)
        self.stop = threading.Event()
        self.feed = Feed(self.engine, stream, stop=self.stop, **options)

    def run(self, source: Source) -> Landed:
        source.run(self.feed)
        return self

    def close(self) -> None:
        self.stop.set()
        self.engine.close()

    @property
    def frames(self) -> list[pl.DataFrame]:
        return [frame for *_, frame in waiting(self.engine.store)]

    @property
    def rows(self) -> list[tuple]:
        """Tuples in order of their positions within their partitions, without the timestamp."""
        columns = names(len(self.stream.fields))
        return [row for frame in self.frames for row in frame.sort("_pos").select(columns).rows()]

    @property
    def stamps(self) -> list[int]:
        return [ts for frame in self.frames for ts in frame.sort("_pos")["_ts"]]

    @property
    def rejects(self) -> list[dict[str, Any]]:
        path = self.engine.folder / side_file(self.stream.name, REJECTED)
        return [json.loads(x) for x in path.read_text().splitlines()] if path.exists() else []

    @property
    def is_finished(self) -> bool:
        sql = "SELECT min(newest) FROM partitions WHERE stream = ?"
        return self.engine.store.all(sql, self.stream.name) == [(FOREVER,)]
