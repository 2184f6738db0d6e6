"""How soon an answer comes: from submit to the first result, and from an event to its result.

Measured at a site on Spark with a window join standing over 30 s of history: the time until a new
query has delivered its first rows, and the time from a push until the result of that very event has
been read back.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import polars as pl

from bench.measure import Stopwatch, percentile
from thalweg.cql import compile_script
from thalweg.engine.arrivals import Row
from thalweg.engine.site import Site, open_site
from thalweg.engine.site.positions import START, Position
from thalweg.experiments.report import Progress, Report

SPAN_MS = 30_000
SCHEMA = """
CREATE STREAM O (item BIGINT, price DOUBLE) TIMESTAMP BY ts BIGINT;
CREATE STREAM C (item BIGINT, buyer BIGINT) TIMESTAMP BY ts BIGINT;
CREATE QUERY standing AS SELECT O.item, C.buyer FROM O [Range 30 Second], C [Range 30 Second]
    WHERE O.item = C.item;
"""


@dataclass(frozen=True)
class Parameters:
    history: int = 100_000  # tuples of each stream that are there when measuring begins
    repeats: int = 20
    cores: int = 2

    @classmethod
    def quick(cls) -> Parameters:
        return cls(history=20_000, repeats=8)


def run(parameters: Parameters, progress: Progress) -> Report:
    with tempfile.TemporaryDirectory(prefix="thalweg-bench-") as folder:
        progress("starting a site")
        site = open_site(Path(folder) / "data", compile_script, master=f"local[{parameters.cores}]")
        try:
            site.execute(SCHEMA)
            world = World(site, parameters.history)
            progress("submitting queries")
            submits = [world.submit(n) for n in range(parameters.repeats)]
            progress("following events")
            events = [world.event(n) for n in range(parameters.repeats)]
        finally:
            site.close()
    rows = [
        {"what": what, "median s": percentile(found, 50), "p95 s": percentile(found, 95)}
        for what, found in (
            ("submit to first result", submits),
            ("event to its result", events),
        )
    ]
    return Report("submit", "From question to answer", asdict(parameters), rows)


class World:
    """A site with history, and a clock of application time that only this bench moves."""

    def __init__(self, site: Site, history: int) -> None:
        self.site, self.now = site, SPAN_MS
        stamps = [i * SPAN_MS // history for i in range(history)]
        items = list(range(history))
        prices = [float(i % 1000) for i in items]
        site.push("O", pl.DataFrame({"ts": stamps, "item": items, "price": prices}))
        site.push("C", pl.DataFrame({"ts": stamps, "item": items[::-1], "buyer": items}))
        site.settle()

    def submit(self, number: int) -> float:
        """A query of its own, whose first rows are those of the window as it stands."""
        name = f"q{number}"
        watch = Stopwatch()
        self.site.execute(
            f"CREATE QUERY {name} AS SELECT item, price FROM O [Range 30 Second] "
            f"WHERE price = {number}"
        )
        self._pass_time()
        self._await(name, START, lambda row: True)
        seconds = watch.seconds
        self.site.stop(name)
        return seconds

    def event(self, number: int) -> float:
        """An item that opens and closes at once, and its row of the standing join."""
        item, stamp = 10_000_000 + number, self.now
        after = self.site.reader(self.site.query("standing")).frontier()  # behind all that was said
        watch = Stopwatch()
        self.site.push("O", pl.DataFrame({"ts": [stamp], "item": [item], "price": [1.0]}))
        self.site.push("C", pl.DataFrame({"ts": [stamp], "item": [item], "buyer": [number]}))
        self._pass_time()
        self._await("standing", after, lambda row: row[0] == item)
        return watch.seconds

    def _pass_time(self) -> None:
        """An instant is final when time has passed it; sources say so by heartbeats."""
        self.now += 1
        for stream in ("O", "C"):
            self.site.heartbeat(stream, self.now)

    def _await(self, query: str, after: Position, wanted: Callable[[Row], bool]) -> None:
        for page in self.site.results(query, after, follow=True, timeout_s=60):
            if any(wanted(change.row) for change in page.changes()):
                return
        raise TimeoutError(f"{query} has said nothing in a minute")
