"""What grows with executors, and what the driver keeps for itself.

The same events come in by pushes, from files that the driver reads and that tasks read, and from
Kafka; on one and on two executors of one core each. Then one tick is divided among more and more
tasks, in one process and one after the other, so that each has the machine to itself: what the
longest of them takes says how far more cores would help. `scale_paper` puts that together.
`scale_store` has the same state on a disk and in an object store.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.measure import CpuWatch, Stopwatch, process_cpu_s
from bench.scale_driver import DriverPhases
from bench.scale_events import Events
from bench.scale_kafka import kafka_rows
from bench.scale_paper import estimate, fitted
from bench.scale_store import STORE, store_rows
from bench.scale_tasks import task_rows
from bench.warm import warmed
from thalweg.engine.session import spark_session
from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.tick.executors import OnSpark
from thalweg.engine.sinks.base import SinkOutlet, open_where_it_was
from thalweg.engine.sinks.jsonl import JsonLinesSink
from thalweg.engine.sources import open_source
from thalweg.engine.sources.feed import Feed
from thalweg.experiments.report import Goal, Progress, Report

PUSHES, BY_DRIVER, IN_TASKS = "pushes", "files, by the driver", "files, in tasks"
_MILLION = 1e6


@dataclass(frozen=True)
class Parameters:
    events: int = 200_000  # new ones a tick, half of each stream
    ticks: int = 5  # measured, after one that nobody looks at
    joins: int = 40  # distinct ones, for large ticks
    executors: tuple[int, ...] = (1, 2)
    tasks: tuple[int, ...] = (1, 2, 4, 16)
    filters: int = 1_000  # beside the join on Kafka's events
    kafka_events: int = 1_000_000  # 0 for none
    stored_events: tuple[int, ...] = (1_000, 200_000)  # a tick, with state in a store
    seed: int = 7

    @classmethod
    def quick(cls) -> Parameters:
        return cls(
            events=100_000,
            ticks=2,
            joins=4,
            tasks=(1, 4, 16),
            kafka_events=100_000,
            stored_events=(1_000, 20_000),
        )


def run(parameters: Parameters, progress: Progress) -> Report:
    load = os.getloadavg()[0]
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="thalweg-bench-") as name:
        folder = Path(name)
        made = Events(parameters.events, parameters.ticks + 1, parameters.seed, folder / "events")
        for executors in parameters.executors:
            with warmed(spark_session(f"local-cluster[{executors},1,2048]")) as spark:
                for way in (PUSHES, BY_DRIVER, IN_TASKS):
                    progress(f"{way}, {executors} executors")
                    here = folder / f"{way}-{executors}".replace(" ", "-")
                    rows += Measured(spark, executors, made, here, parameters).rows(way)
        progress("one tick in more and more tasks")
        sizes = (parameters.events, 5 * parameters.events)
        tasks = task_rows(sizes, parameters.tasks, parameters.seed, folder / "tasks")
        progress("state in an object store")
        stored = store_rows(
            parameters.stored_events, parameters.ticks, parameters.seed, folder / "stored"
        )
        kafka: list[dict[str, Any]] = []
        if parameters.kafka_events:
            progress("Kafka")
            kafka = kafka_rows(
                parameters.kafka_events, parameters.filters, parameters.seed, folder / "kafka"
            )
    paper = estimate(rows, tasks, parameters.events)
    notes = [
        f"The machine's load was {load:.1f} when it began, on {os.cpu_count()} cores, which driver "
        "and executors share: speed-ups are by the clock, all else is processor time.",
        "Driver: the Python process and its JVM, without the executors'.",
        f"What a task costs, by the number of tasks P, from the longest of each: {fitted(tasks)}.",
        *paper.notes,
    ]
    return Report(
        "scale",
        "From two cores to many",
        asdict(parameters),
        [*rows, *tasks, *stored, *kafka, *paper.rows],
        [*goals(rows, kafka), *_goals_of_store(stored)],
        notes,
    )


def goals(rows: list[dict[str, Any]], kafka: list[dict[str, Any]]) -> list[Goal]:
    def of(what: str, source: str, executors: int) -> dict[str, Any]:
        keys = (what, source, executors)
        return next(r for r in rows if (r["what"], r["source"], r["executors"]) == keys)

    few, many = min(r["executors"] for r in rows), max(r["executors"] for r in rows)
    found = [
        Goal(
            "driver's share of a large tick's CPU",
            of("tick", IN_TASKS, many)["driver share"],
            0.1,
            "",
            False,
        ),
        Goal(
            "driver's share of landing files",
            of("land", IN_TASKS, many)["driver share"],
            0.1,
            "",
            False,
        ),
    ]
    for what, title in (("tick", "large ticks"), ("land", "file ingest")):
        slow, quick = of(what, IN_TASKS, few), of(what, IN_TASKS, many)
        name = f"{title}, {many} executors over {few}"
        found.append(Goal(name, slow["seconds"] / quick["seconds"], 1.7, "times"))
    for row in kafka:
        if row["source"] == "kafka":
            found += [
                Goal("Kafka: CPU an event without the broker's", row["us/event"], 4, "us", False),
                Goal("Kafka: events a second", row["events/s"], 300_000),
            ]
    return found


def _goals_of_store(stored: list[dict[str, Any]]) -> list[Goal]:
    there = [r for r in stored if r["what"] == "store" and r["source"] == STORE]
    return [
        Goal(
            f"puts of a task in a tick of {row['events']:,} events, with a store",
            row["put a tick"] / row["tasks"],
            1,
            "",
            False,
        )
        for row in there
    ]


class Driver:
    """Processor seconds of the driver: this process and its JVM."""

    def __init__(self, spark: Any) -> None:
        self.jvm = int(spark._jvm.java.lang.ProcessHandle.current().pid())

    @property
    def seconds(self) -> tuple[float, float]:
        return time.process_time(), process_cpu_s(self.jvm)


class Measured:
    """One way in, landing and ticks apart."""

    def __init__(
        self, spark: Any, executors: int, made: Events, folder: Path, parameters: Parameters
    ) -> None:
        self._spark, self._executors, self._made = spark, executors, made
        self._folder, self._parameters, self._driver = folder, parameters, Driver(spark)
        outlet = SinkOutlet()
        executor = OnSpark(spark.sparkContext, executors)
        self.engine = SharedEngine(folder / "data", executor, outlet=outlet)
        sink = JsonLinesSink(folder / "rows.jsonl")
        open_where_it_was(self.engine.store, "j0", "rows", sink)
        outlet.attach("j0", "rows", sink)
        compiled = made.script(parameters.joins)
        self.streams = {s.name: s for s in compiled.catalog.streams()}
        for stream in self.streams.values():
            self.engine.add_stream(stream)
        self.engine.add_queries(compiled.queries)
        made.push_first(self.engine)
        self.engine.tick()  # SteMs stand, workers have loaded what they need

    def rows(self, way: str) -> list[dict[str, Any]]:
        lands = {
            PUSHES: lambda: self._made.push_rest(self.engine),
            BY_DRIVER: lambda: self._from_files(None),
            IN_TASKS: lambda: self._from_files(self._spark),
        }
        landed = self._part("land", way, lands[way])
        phases: dict[str, float] = {}

        def tick() -> None:
            while (done := self.engine.tick(limit=self._made.a_tick)) is not None:
                for name, seconds in done.by_phase.items():
                    phases[f"{name} s"] = phases.get(f"{name} s", 0.0) + seconds

        noted = DriverPhases(self._driver.jvm)
        with noted.noting():
            ticked = self._part("tick", way, tick, noted)
        self.engine.close()
        return [landed, ticked | phases | noted.row()]

    def _from_files(self, spark: Any) -> None:
        for stream in self.streams.values():
            source = open_source(stream, spark, self._made.folder, live=False)
            source.run(Feed(self.engine, stream, largest_backlog=1 << 40))

    def _part(
        self, what: str, way: str, do: Callable[[], Any], noted: DriverPhases | None = None
    ) -> dict[str, Any]:
        watch, cpu, before = Stopwatch(), CpuWatch(), self._driver.seconds
        do()
        seconds, total = watch.seconds, cpu.seconds
        python, jvm = (b - a for a, b in zip(before, self._driver.seconds, strict=True))
        if noted is not None:
            python, total = python - noted.own_s, total - noted.own_s
        driver, events = python + jvm, self._made.rest
        return {
            "what": what,
            "source": way,
            "executors": self._executors,
            "events": events,
            "seconds": seconds,
            "cpu s": total,
            "driver s": driver,
            "of it Python's": python,
            "driver s per million": driver / events * _MILLION,
            "driver share": driver / total if total else 0.0,
        }
