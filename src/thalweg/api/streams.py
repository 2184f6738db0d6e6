"""Streams as Python objects."""

from __future__ import annotations

from typing import Any

from thalweg.engine.shared.ingest.arriving import Receipt
from thalweg.engine.site import Site
from thalweg.engine.site.status import StreamStatus
from thalweg.engine.sources.rows import frame_of
from thalweg.plan.catalog import StreamDef


class Stream:
    """A stream or relation that tuples can be pushed to."""

    def __init__(self, site: Site, definition: StreamDef) -> None:
        self._site, self._definition = site, definition

    @property
    def name(self) -> str:
        return self._definition.name

    def push(self, rows: Any, *, partition: int = 0, batch_id: str | None = None) -> Receipt:
        """Hand in rows: dictionaries, a pandas or Polars frame, an Arrow table. Durable when it
        returns; waits while the engine is behind. A repeated `batch_id` counts once."""
        batch = frame_of(self._definition, [rows] if isinstance(rows, dict) else rows)
        return self._site.push(self.name, batch, partition=partition, batch_id=batch_id)

    def heartbeat(self, instant: int, *, partition: int = 0) -> None:
        """Promise that no tuple below this instant will come."""
        self._site.heartbeat(self.name, instant, partition=partition)

    def finish(self) -> None:
        """Promise that no tuple will come any more."""
        self._site.finish(self.name)

    def status(self) -> StreamStatus:
        return next(s for s in self._site.streams() if s.name == self.name)

    def __repr__(self) -> str:
        columns = ", ".join(str(f) for f in self._definition.fields)
        return f"Stream({self.name!r}: {columns})"
