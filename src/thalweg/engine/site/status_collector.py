"""Gathers what a site says about itself; reads the book and never waits for a tick."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from thalweg.engine.shared.frames import FOREVER
from thalweg.engine.shared.state.inputs import Partition
from thalweg.engine.shared.state.names import GROUP, LATE, REJECTED
from thalweg.engine.shared.tick.cut import watermark
from thalweg.engine.site.book import Parked, kind_of
from thalweg.engine.site.errors import Unknown
from thalweg.engine.site.groups import GroupStatus, group_status
from thalweg.engine.site.history import completion
from thalweg.engine.site.publications import is_internal
from thalweg.engine.site.savings import Cost
from thalweg.engine.site.status import (
    Health,
    QueryStatus,
    SinkStatus,
    StreamStatus,
    instant_text,
)
from thalweg.engine.site.ticker import Ticked
from thalweg.plan.catalog import QueryDef, StreamDef
from thalweg.plan.shapes import shape_of
from thalweg.plan.travelling import without_plan
from thalweg.plan.windows import BEGINNING
from thalweg.sharing.estimate import Statistics

if TYPE_CHECKING:
    from thalweg.engine.site.site import Site


class StatusCollector:
    def __init__(self, site: Site) -> None:
        self._ticking_s = 0.0
        self.site = site
        self._costs: dict[str, Cost] = {}  # by run: queries by themselves, and groups
        self._began, self._arrived_before = time.monotonic(), self._arrived()

    def ticked(self, done: Ticked) -> None:
        self._ticking_s += done.tick.seconds
        for run, seconds in done.tick.by_query.items():
            self._costs[run] = self._costs.get(run, Cost()) + Cost(seconds, done.tick.rows_in)

    def health(self) -> Health:
        site = self.site
        error = site.ticker.error
        if error is None and not site.ticker.is_alive():
            error = "the thread that ticks is gone: start the service again"
        return Health(
            ok=error is None,
            tick=site.engine.store.last_committed(),
            backlog=site.engine.landing.backlog(),
            queries=len(site.catalog.queries()),
            streams=len(site.catalog.streams()),
            error=error,
            problems=[*([error] if error is not None else ()), *self._problems()],
        )

    def _problems(self) -> Iterator[str]:
        for stream in self.site.catalog.streams():
            feed = self.site.feeds.find(stream.name)
            if feed is not None and feed.error is not None:
                yield f"the source of {stream.name} fails: {feed.error}"
        for query, name, target, error in self.site.book.sinks():
            if error is not None:
                yield f"{name} of query {query} ({target}) was given up: {error}"
        for query, parked in self.site.book.parked().items():
            yield f"query {query} is parked since tick {parked.tick}: {parked.error}"
        for aside in self.site.catalog.set_aside():
            yield f"{aside.kind} {aside.name} is set aside: {aside.reason}"

    # --- queries

    def queries(self) -> list[QueryStatus]:
        parked = self.site.book.parked()
        frontiers = self.site.engine.store.frontiers()
        sinks: dict[str, list[SinkStatus]] = {}
        for query, name, target, error in self.site.book.sinks():
            sinks.setdefault(query, []).append(SinkStatus(name, target, error))
        sizes = Counter(self.site.engine.roster.group_of.values())
        texts = {name: text for name, _, text in self.site.book.definitions()}
        queries = [q for q in self.site.catalog.queries() if not is_internal(q)]
        lineages = self.site.engine.store.versions.lineages(q.name for q in queries)
        return [
            self._query(
                q,
                parked.get(q.name),
                frontiers,
                sinks.get(q.name, []),
                sizes,
                texts[q.name],
                lineages[q.name].version if q.name in lineages else 1,
            )
            for q in queries
        ]

    def state(self, query: QueryDef) -> str:
        """waiting, running, finished or parked"""
        running = self.site.engine.roster.run_of(query.name)
        if running is None:
            return "parked"
        return _query_state(None, self.site.engine.store.frontier(running.flow))

    def _query(
        self,
        query: QueryDef,
        parked: Parked | None,
        frontiers: dict[str, int],
        sinks: list[SinkStatus],
        sizes: Mapping[str, int],
        text: str,
        version: int,
    ) -> QueryStatus:
        running = self.site.engine.roster.queries.get(query.name)
        home = self.site.engine.roster.group_of.get(query.name)
        run = self.site.engine.roster.run_of(query.name)
        frontier = frontiers.get(run.flow) if run is not None else None
        took = self.site.delays.of(home or query.name)
        shape = shape_of(query)
        gaps = running.gaps if running is not None else ()
        complete, is_filling = completion(gaps, frontier, shape.streams[0])
        state = _query_state(parked, frontier)
        lost = next((t for s in shape.streams if (t := self.site.lost.get(s.name))), None)
        if lost is not None and state != "parked":
            state = "lost"
        return QueryStatus(
            name=query.name,
            state="filling" if is_filling and state == "running" else state,
            kind=shape.kind.value if shape.kind is not None else "relation",
            columns=[(f.name, str(f.type)) for f in shape.schema],
            streams=[s.name for s in shape.streams],
            flow=run.flow if run is not None else None,
            group=home,
            rows=self._rows(query.name, home),
            cost_s=self._cost_s(query.name, home, sizes),
            started=running.started if running is not None else None,
            horizons=dict(running.horizons) if running is not None else {},
            complete_from=complete,
            frontier=_instant_text(frontier, shape.streams[0]),
            error=f"tick {parked.tick}: {parked.error}" if parked is not None else lost,
            sinks=sinks,
            delay_ms=None if took is None else 1000 * took.delay_s,
            pr=None if took is None else took.pr,
            cpr=None if took is None else took.cpr,
            text=without_plan(text),
            version=version,
            resolution_us=shape.streams[0].resolution_us,
            is_temporal=shape.streams[0].timestamp_type.is_temporal,
        )

    def _rows(self, query: str, home: str | None) -> int | None:
        is_counted = home is None or self.site.outlet.wants(query)
        return self.site.outlet.rows_of(query) if is_counted else None

    def _cost_s(self, query: str, home: str | None, sizes: Mapping[str, int]) -> float:
        """What it cost by itself, and its part of what its group has cost."""
        own = self._costs.get(query, Cost()).seconds
        if home is None:
            return own
        members = sizes.get(home) or 1  # it may have moved since the sizes were taken
        return own + self._costs.get(home, Cost()).seconds / members

    @property
    def ticking_s(self) -> float:
        """For how long ticks have run since the site started."""
        return self._ticking_s

    def seconds(self) -> dict[str, float]:
        """Of the tasks' time since the site started: of all queries that run by themselves, those
        for other nodes included, and of groups."""
        return {run: cost.seconds for run, cost in list(self._costs.items())}

    # --- groups

    def groups(self) -> list[GroupStatus]:
        return self._groups(None)

    def group(self, name: str) -> GroupStatus:
        """By its name, `group/1`, or its number."""
        full = name if name.startswith(GROUP) else GROUP + name
        found = self._groups(full)
        if not found:
            raise Unknown("group", name, list(self.site.engine.roster.groups))
        return found[0]

    def group_of(self, query: str) -> GroupStatus | None:
        home = self.site.engine.roster.group_of.get(query)
        return self.group(home) if home is not None else None

    def _groups(self, only: str | None) -> list[GroupStatus]:
        roster = self.site.engine.roster
        with self.site.gate.between_ticks():
            groups = [g for name, g in roster.groups.items() if only in (None, name)]
            members = {g.name: roster.members_of(g.name) for g in groups}
            statistics, costs = self._statistics(), dict(self._costs)
        # Ticks need not wait for the rest: what was taken does not change any more.
        return [group_status(g, members[g.name], costs, statistics) for g in groups]

    def _statistics(self) -> Statistics:
        """Tuples a second since the start, of the streams that had any."""
        elapsed_s = max(time.monotonic() - self._began, 1e-3)
        fresh = ((s, n - self._arrived_before.get(s, 0)) for s, n in self._arrived().items())
        return Statistics({s: n / elapsed_s for s, n in fresh if n > 0})

    def _arrived(self) -> dict[str, int]:
        return self.site.engine.store.inputs.arrived()

    # --- streams

    def streams(self) -> list[StreamStatus]:
        inputs = self.site.engine.store.inputs
        backlog, aside = inputs.backlogs(), inputs.all_set_aside()
        partitions: dict[str, list[Partition]] = {}
        for (name, _), partition in inputs.partitions().items():
            partitions.setdefault(name, []).append(partition)
        return [
            self._stream(s, partitions.get(s.name, []), backlog.get(s.name, 0), aside)
            for s in self.site.catalog.streams()
            if not is_internal(s)
        ]

    def _stream(
        self,
        stream: StreamDef,
        partitions: list[Partition],
        backlog: int,
        aside: Mapping[tuple[str, str], int],
    ) -> StreamStatus:
        now = watermark(stream, [p.newest for p in partitions])
        feed = self.site.feeds.find(stream.name)
        error = feed.error if feed is not None else None
        return StreamStatus(
            name=stream.name,
            kind=kind_of(stream),
            columns=[(f.name, str(f.type)) for f in stream.fields],
            timestamp=stream.timestamp,
            source=stream.source,
            state=_stream_state(now, error, is_idle=feed is not None and feed.is_idle()),
            arrived=sum(p.position for p in partitions),
            backlog=backlog,
            late=aside.get((stream.name, LATE), 0),
            rejected=aside.get((stream.name, REJECTED), 0),
            watermark=_instant_text(now, stream),
            error=error,
            resolution_us=stream.resolution_us,
            is_temporal=stream.timestamp_type.is_temporal,
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
