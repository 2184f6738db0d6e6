"""What Prometheus sees of a site; gathered when it asks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, SummaryMetricFamily

from thalweg.engine.site.ticker import Ticked

if TYPE_CHECKING:
    from thalweg.engine.site.site import Site


class SiteMetrics:
    def __init__(self, site: Site) -> None:
        self._site = site
        self._ticks, self._seconds, self._rows_in = 0, 0.0, 0
        self._by_phase: Counter[str] = Counter()

    def ticked(self, done: Ticked) -> None:
        self._ticks += 1
        self._seconds += done.tick.seconds
        self._rows_in += done.tick.rows_in
        self._by_phase.update(done.tick.by_phase)

    def collect(self) -> Iterable[Metric]:
        health = self._site.health()
        yield GaugeMetricFamily("thalweg_healthy", "1 while ticks come through", float(health.ok))
        yield GaugeMetricFamily(
            "thalweg_backlog_tuples", "Tuples that wait for a tick", health.backlog
        )
        yield SummaryMetricFamily(
            "thalweg_tick_seconds",
            "Time that ticks took since the start",
            count_value=self._ticks,
            sum_value=self._seconds,
        )
        yield CounterMetricFamily(
            "thalweg_tick_tuples", "Tuples that ticks took in since the start", self._rows_in
        )
        phases = CounterMetricFamily(
            "thalweg_tick_phase_seconds", "Where ticks' time went", labels=["phase"]
        )
        for phase, seconds in sorted(self._by_phase.items()):
            phases.add_metric([phase], seconds)
        yield phases
        yield from self._of_queries()
        yield from self._of_streams()

    def _of_queries(self) -> Iterable[Metric]:
        rows = CounterMetricFamily("thalweg_query_rows", "Rows said", labels=["query"])
        cost = CounterMetricFamily(
            "thalweg_query_cost_seconds", "Tasks' time since the start", labels=["query"]
        )
        ratio = GaugeMetricFamily(
            "thalweg_query_performance_ratio", "Delay of results over the work", labels=["query"]
        )
        parked = GaugeMetricFamily("thalweg_query_parked", "1 if parked", labels=["query"])
        for query in self._site.queries():
            if query.rows is not None:
                rows.add_metric([query.name], query.rows)
            cost.add_metric([query.name], query.cost_s)
            if query.pr is not None:
                ratio.add_metric([query.name], query.pr)
            parked.add_metric([query.name], float(query.state == "parked"))
        return rows, cost, ratio, parked

    def _of_streams(self) -> Iterable[Metric]:
        counts = {
            name: CounterMetricFamily(f"thalweg_stream_{name}", what, labels=["stream"])
            for name, what in (
                ("arrived", "Tuples that came"),
                ("late", "Tuples that came too late"),
                ("rejected", "Tuples that were rejected"),
            )
        }
        idle = GaugeMetricFamily("thalweg_stream_idle", "1 if silent for IDLE", labels=["stream"])
        for stream in self._site.streams():
            for name, family in counts.items():
                family.add_metric([stream.name], getattr(stream, name))
            idle.add_metric([stream.name], float(stream.state == "idle"))
        return *counts.values(), idle
