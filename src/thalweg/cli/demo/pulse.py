"""What the demo shows, taken from the running site a few times a second."""

from __future__ import annotations

import statistics
import time
from collections import deque
from dataclasses import dataclass, field, replace

import polars as pl

from thalweg.engine.changelog import Change
from thalweg.engine.shared.frames import OP
from thalweg.engine.shared.results.emission import Emission
from thalweg.engine.sinks.callback import CallbackSink
from thalweg.engine.site import Site
from thalweg.engine.site.reading import Page
from thalweg.engine.site.status import QueryStatus, StreamStatus

_WINDOW_S = 5.0  # rates are over so long


@dataclass(frozen=True, slots=True)
class Sample:
    at: float
    arrived: dict[str, int]
    rows: dict[str, int]


@dataclass(frozen=True, slots=True)
class Picture:
    """One moment of the demo."""

    elapsed_s: float
    queries: list[QueryStatus]
    streams: list[StreamStatus]
    last: dict[str, Change]
    rows_per_s: dict[str, float]
    arrived_per_s: dict[str, float]
    events: int
    events_per_s: list[float]  # newest last
    tick: int
    tick_s: list[float]  # newest last
    error: str | None

    @property
    def rows(self) -> int:
        return sum(q.rows or 0 for q in self.queries)

    def tick_quantile(self, share: float) -> float:
        ordered = sorted(self.tick_s)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0

    @property
    def median_tick_s(self) -> float:
        return statistics.median(self.tick_s) if self.tick_s else 0.0


@dataclass
class Pulse:
    site: Site
    began: float = field(default_factory=time.monotonic)
    last: dict[str, Change] = field(default_factory=dict)
    samples: deque[Sample] = field(default_factory=lambda: deque(maxlen=600))
    events_per_s: deque[float] = field(default_factory=lambda: deque(maxlen=120))

    def watch(self, query: str) -> None:
        """Keep the query's last row at hand, one that entered where there is one."""

        def take(emission: Emission) -> None:
            entered = emission.rows.filter(pl.col(OP) > 0)
            rows = (entered if entered.height else emission.rows).tail(1)
            self.last[query] = next(Page(replace(emission, rows=rows)).changes())

        self.site.attach(query, "demo", CallbackSink(take))

    def picture(self) -> Picture:
        queries, streams = self.site.queries(), self.site.streams()
        now = Sample(
            time.monotonic(),
            {s.name: s.arrived for s in streams},
            {q.name: q.rows or 0 for q in queries},
        )
        before = next((s for s in self.samples if now.at - s.at <= _WINDOW_S), now)
        self.samples.append(now)
        span = max(now.at - before.at, 1e-9)
        arrived_per_s = _rates(before.arrived, now.arrived, span)
        self.events_per_s.append(sum(arrived_per_s.values()))
        recent = list(self.site.ticker.recent)
        return Picture(
            elapsed_s=now.at - self.began,
            queries=queries,
            streams=streams,
            last=dict(self.last),
            rows_per_s=_rates(before.rows, now.rows, span),
            arrived_per_s=arrived_per_s,
            events=sum(now.arrived.values()),
            events_per_s=list(self.events_per_s),
            tick=recent[-1].tick.number if recent else 0,
            tick_s=[t.tick.seconds for t in recent],
            error=self.site.ticker.error,
        )


def _rates(before: dict[str, int], now: dict[str, int], span_s: float) -> dict[str, float]:
    return {name: (count - before.get(name, 0)) / span_s for name, count in now.items()}
