"""Gathers what a site says about itself; reads the book and never waits for a tick."""

from __future__ import annotations

from typing import TYPE_CHECKING

from thalweg.engine.shared.cut import watermark
from thalweg.engine.shared.frames import FOREVER
from thalweg.engine.shared.task import BEGINNING
from thalweg.engine.site.book import Parked, kind_of
from thalweg.engine.site.status import (
    Health,
    QueryStatus,
    SinkStatus,
    StreamStatus,
    instant_text,
)
from thalweg.engine.site.ticker import Ticked
from thalweg.plan.catalog import QueryDef, StreamDef
from thalweg.plan.nodes import ToStream, base_streams

if TYPE_CHECKING:
    from thalweg.engine.site.site import Site


class Survey:
    def __init__(self, site: Site) -> None:
        self.site = site
        self._cost_s: dict[str, float] = {}

    def ticked(self, done: Ticked) -> None:
        for query, seconds in done.tick.by_query.items():
            self._cost_s[query] = self._cost_s.get(query, 0.0) + seconds

    def health(self) -> Health:
        site = self.site
        return Health(
            ok=site.ticker.error is None,
            tick=site.reading.last_tick(),
            backlog=site.engine.landing.backlog(),
            queries=len(site.catalog.queries()),
            streams=len(site.catalog.streams()),
            error=site.ticker.error,
        )

    # --- queries

    def queries(self) -> list[QueryStatus]:
        parked = self.site.book.parked()
        frontiers = dict(self.site.engine.store.all("SELECT flow, frontier FROM frontiers"))
        sinks: dict[str, list[SinkStatus]] = {}
        for query, name, target, error in self.site.book.sinks():
            sinks.setdefault(query, []).append(SinkStatus(name, target, error))
        return [
            self._query(q, parked.get(q.name), frontiers, sinks.get(q.name, []))
            for q in self.site.catalog.queries()
        ]

    def state(self, query: QueryDef) -> str:
        """waiting, running, finished or parked"""
        running = self.site.engine.run_of(query.name)
        if running is None:
            return "parked"
        sql = "SELECT frontier FROM frontiers WHERE flow = ?"
        rows = self.site.engine.store.all(sql, running.flow)
        return _query_state(None, rows[0][0] if rows else None)

    def _query(
        self,
        query: QueryDef,
        parked: Parked | None,
        frontiers: dict[str, int],
        sinks: list[SinkStatus],
    ) -> QueryStatus:
        running = self.site.engine.queries.get(query.name)
        run = self.site.engine.run_of(query.name)
        frontier = frontiers.get(run.flow) if run is not None else None
        streams = base_streams(query.plan)
        return QueryStatus(
            name=query.name,
            state=_query_state(parked, frontier),
            kind=query.plan.kind.value if isinstance(query.plan, ToStream) else "relation",
            columns=[(f.name, str(f.type)) for f in query.plan.schema],
            streams=[s.name for s in streams],
            flow=run.flow if run is not None else None,
            rows=self.site.outlet.rows_of(query.name),
            cost_s=self._cost_s.get(query.name, 0.0),
            started=running.started if running is not None else None,
            horizons=dict(running.horizons) if running is not None else {},
            frontier=_instant_text(frontier, streams[0]),
            error=f"tick {parked.tick}: {parked.error}" if parked is not None else None,
            sinks=sinks,
            text=self.site.book.text_of(query.name),
        )

    # --- streams

    def streams(self) -> list[StreamStatus]:
        store = self.site.engine.store
        backlog = dict(store.all("SELECT stream, sum(rows) FROM landed GROUP BY stream"))
        counters = store.counters()
        partitions: dict[str, list[tuple[int, int]]] = {}
        for name, newest, position in store.all("SELECT stream, newest, position FROM partitions"):
            partitions.setdefault(name, []).append((newest, position))
        return [
            self._stream(s, partitions.get(s.name, []), backlog.get(s.name, 0), counters)
            for s in self.site.catalog.streams()
        ]

    def _stream(
        self,
        stream: StreamDef,
        partitions: list[tuple[int, int]],
        backlog: int,
        counters: dict[str, int],
    ) -> StreamStatus:
        now = watermark(stream, [newest for newest, _ in partitions])
        feed = self.site.feeds.find(stream.name)
        error = feed.error if feed is not None else None
        return StreamStatus(
            name=stream.name,
            kind=kind_of(stream),
            columns=[(f.name, str(f.type)) for f in stream.fields],
            timestamp=stream.timestamp,
            source=stream.source,
            state=_stream_state(now, error, is_idle=feed is not None and feed.is_idle()),
            arrived=sum(position for _, position in partitions),
            backlog=backlog,
            late=counters.get(f"late/{stream.name}", 0),
            rejected=counters.get(f"rejected/{stream.name}", 0),
            watermark=_instant_text(now, stream),
            error=error,
        )


def _stream_state(now: int, error: str | None, is_idle: bool) -> str:
    if now >= FOREVER:
        return "ended"
    if error is not None:
        return "failing"
    if is_idle:
        return "idle"
    return "waiting" if now <= BEGINNING else "flowing"


def _query_state(parked: Parked | None, frontier: int | None) -> str:
    if parked is not None:
        return "parked"
    if frontier is None or frontier <= BEGINNING:
        return "waiting"
    return "finished" if frontier >= FOREVER else "running"


def _instant_text(instant: int | None, stream: StreamDef) -> str | None:
    return instant_text(instant, stream.resolution_us, stream.timestamp_type.is_temporal)
