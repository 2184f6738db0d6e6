"""Systems run on the same queries and events, one after the other, and what came of it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any

from bench import auctions, extrapolate
from bench.standing import Standing, draw
from bench.systems import expert, flink, native, pathway, shared
from bench.systems.outcome import Outcome, Unable
from thalweg.engine.shared.groups.cost_model import Sharing
from thalweg.engine.shared.tick.executors import OnSpark
from thalweg.experiments.report import Progress

if TYPE_CHECKING:
    from bench.many_queries import Parameters

OURS = ("shared", "unshared")
PEERS = ("native", "expert", "flink", "pathway")

Row = dict[str, Any]


@dataclass
class Comparison:
    """Runs systems on the same queries and events, and keeps what they told."""

    parameters: Parameters
    progress: Progress
    folder: Path
    spark: Any = None
    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    differing: int = 0  # runs whose results were not those of `shared`
    compared: int = 0
    measured: dict[str, dict[int, Outcome]] = field(default_factory=dict)
    _given_up: set[str] = field(default_factory=set)
    _runs: int = 0

    def write_events(self) -> None:
        p = self.parameters
        self.progress(f"writing {self.events:,} events")
        made = auctions.batches(p.events, p.seed, max(p.windows_s))
        for number, batch in enumerate(islice(made, p.ticks)):
            auctions.write_parquet(batch, number, self.folder / "parquet")
            if {"flink", "pathway"} & set(p.peers):
                auctions.append_csv(batch, p.cores, self.folder / "csv")
        self.files = auctions.parquet_files(self.folder / "parquet")

    def warm_up(self) -> None:
        """A short run of each system that lives in this process, and that nobody counts."""
        p = self.parameters
        self.progress("warming up")
        data = self.folder / "few" / "parquet"
        made = auctions.batches(min(p.events, 2_000), p.seed, max(p.windows_s))
        for number, batch in enumerate(islice(made, 2)):
            auctions.write_parquet(batch, number, data)
        standing, files = self.drawn(1, 1.0, p.rows), auctions.parquet_files(data)
        shared.run(standing, files, OnSpark(self.spark.sparkContext), self.folder / "few" / "ours")
        for name, system in (("native", native), ("expert", expert)):
            if name in p.peers:
                with suppress(Unable):
                    system.run(standing, data, self.spark, self.folder / "few" / name, p.limit_s)

    @property
    def events(self) -> int:
        return self.parameters.events * self.parameters.ticks

    def drawn(self, queries: int, overlap: float, rows: float) -> list[Standing]:
        p = self.parameters
        return draw(queries, overlap, min(p.share, rows / queries), p.windows_s, p.seed)

    # --- all systems, by the number of queries

    def compare(self) -> None:
        p = self.parameters
        for queries in sorted(p.queries):
            standing = self.drawn(queries, p.overlap, p.rows)
            systems = [*OURS, *(s for s in p.peers if s != "none")]
            if queries > p.unshared_up_to:
                systems.remove("unshared")
            for system in systems:
                self.progress(f"{system}, {queries:,} queries")
                self._one(system, standing)

    def _one(self, system: str, standing: list[Standing]) -> None:
        queries = len(standing)
        known = self.measured.setdefault(system, {})
        spent = {n: o.start_s + o.seconds for n, o in known.items()}
        coming = extrapolate.linear(spent, queries)
        if system in PEERS and coming is not None and coming > self.parameters.limit_s:
            self._given_up.add(system)
        if system in self._given_up:
            self._extrapolate(system, queries)
            return
        try:
            outcome = self.outcome(system, standing)
        except Unable as reason:
            self.notes.append(f"{system}, {queries:,} queries: {reason}.")
            self._given_up.add(system)
            self._extrapolate(system, queries)
            return
        known[queries] = outcome
        same = outcome.said.equals(self.measured["shared"][queries].said)
        self.compared += 1
        self.differing += not same
        self.rows.append(self.row(system, standing, outcome, same))

    def outcome(self, system: str, standing: list[Standing]) -> Outcome:
        self._runs += 1
        folder = self.folder / f"run-{self._runs}"
        try:
            return self._run(system, standing, folder)
        finally:
            rmtree(folder, ignore_errors=True)  # many runs would fill the disk

    def _run(self, system: str, standing: list[Standing], folder: Path) -> Outcome:
        p = self.parameters
        match system:
            case "native":
                data = self.folder / "parquet"
                return native.run(standing, data, self.spark, folder, p.limit_s)
            case "expert":
                data = self.folder / "parquet"
                return expert.run(standing, data, self.spark, folder, p.limit_s)
            case "pathway":
                return pathway.run(standing, self.folder / "csv", p.cores, folder, p.limit_s)
            case "flink":
                return flink.run(standing, self.folder / "csv", p.cores, folder, p.limit_s)
            case _:
                executor = OnSpark(self.spark.sparkContext)
                sharing = Sharing.WHERE_IT_PAYS if system == "shared" else Sharing.NEVER
                return shared.run(standing, self.files, executor, folder, sharing=sharing)

    def row(self, system: str, standing: list[Standing], outcome: Outcome, same: bool) -> Row:
        row = {
            "system": system,
            "queries": len(standing),
            "seconds": outcome.seconds,
            "cpu s": outcome.cpu_s,
            "query-events/s": len(standing) * self.events / outcome.seconds,
            "rows out": int(outcome.said["rows"].sum()),
            "start s": outcome.start_s,
            "peak MB": outcome.peak_bytes / 1e6,
            "how": "measured",
            "same results": same,
        }
        if outcome.ticks:
            row["median tick s"] = outcome.median_tick_s(self.settled)
            row["groups"] = outcome.groups
        return row

    @property
    def settled(self) -> int:
        """The first tick at which all windows are full."""
        return max(self.parameters.windows_s)

    def _extrapolate(self, system: str, queries: int) -> None:
        known = self.measured[system]
        seconds = extrapolate.linear({n: o.seconds for n, o in known.items()}, queries)
        if seconds is None:
            return  # it was stopped early: a note says why
        self.rows.append(
            {
                "system": system,
                "queries": queries,
                "seconds": seconds,
                "cpu s": extrapolate.linear({n: o.cpu_s for n, o in known.items()}, queries),
                "query-events/s": queries * self.events / seconds,
                "how": f"extrapolated from {max(known):,}",
            }
        )

    def rate(self, system: str, queries: int) -> float | None:
        """Query-events per second, measured or not."""
        found = [r for r in self.rows if (r["system"], r["queries"]) == (system, queries)]
        return found[0]["query-events/s"] if found else None

    # --- the price of sharing where there is nothing to share

    def pairs(self) -> dict[str, list[Row]]:
        """Runs with and without sharing in turn, since the machine changes its speed."""
        p = self.parameters
        cases = {
            "one query": self.drawn(1, 1.0, p.rows),
            f"{p.distinct} queries without overlap": self.drawn(p.distinct, 0.0, p.rows),
        }
        found: dict[str, list[Row]] = {}
        for case, standing in cases.items():
            for number in range(p.pairs):
                self.progress(f"{case}, pair {number + 1} of {p.pairs}")
                order = OURS if number % 2 == 0 else OURS[::-1]
                outcomes = {system: self.outcome(system, standing) for system in order}
                same = outcomes["shared"].said.equals(outcomes["unshared"].said)
                self.compared += 1
                self.differing += not same
                found.setdefault(case, []).extend(
                    self.row(system, standing, outcomes[system], same) | {"how": f"pair: {case}"}
                    for system in OURS
                )
        return found

    def few_results(self, many: int) -> list[Row]:
        """One query and many with the same number of rows in all."""
        rows = []
        for queries in (1, many):
            self.progress(f"{queries:,} queries with few results")
            standing = self.drawn(queries, 1.0, self.parameters.few_rows)
            outcome = self.outcome("shared", standing)
            rows.append(self.row("shared", standing, outcome, True) | {"how": "few results"})
        return rows
