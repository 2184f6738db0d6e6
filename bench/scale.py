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
from bench.scale_restart import restart_rows
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
PARTS = EXECUTORS, OBJECTS, STARTS, KAFKA = "executors", "store", "starts", "kafka"
_MILLION = 1e6


@dataclass(frozen=True)
class Parameters:
    events: int = 200_000  # new ones a tick, half of each stream
    ticks: int = 5  # measured, after one that nobody looks at
    joins: int = 40  # distinct ones, for large ticks
    executors: tuple[int, ...] = (1, 2)
    warm_jobs: int = 100  # empty ones, after which the driver's JVM is what it stays
    tasks: tuple[int, ...] = (1, 2, 4, 16)
    filters: int = 1_000  # beside the join on Kafka's events
    kafka_events: int = 1_000_000
    kafka_runs: int = 3  # of each way; goals are about the last
    stored_events: tuple[int, ...] = (1_000, 200_000)  # a tick, with state in a store
    state_mb: tuple[int, ...] = (100, 1_000)  # of starts
    only: tuple[str, ...] = PARTS
    seed: int = 7

    def __post_init__(self) -> None:
        if unknown := [name for name in self.only if name not in PARTS]:
            raise ValueError(f"there is no {', '.join(unknown)}: there are {', '.join(PARTS)}")

    @classmethod
    def quick(cls) -> Parameters:
        return cls(
            events=100_000,
            ticks=2,
            joins=4,
            warm_jobs=10,
            tasks=(1, 4, 16),
            kafka_events=100_000,
            kafka_runs=1,
            stored_events=(1_000, 20_000),
            state_mb=(20,),
        )


def run(parameters: Parameters, progress: Progress) -> Report:
    load, p = os.getloadavg()[0], parameters
    rows: list[dict[str, Any]] = []
    tasks: list[dict[str, Any]] = []
    stored: list[dict[str, Any]] = []
    kafka: list[dict[str, Any]] = []
    notes = [
        f"The machine's load was {load:.1f} when it began, on {os.cpu_count()} cores, which driver "
        "and executors share: speed-ups are by the clock, all else is processor time.",
        "Driver: the Python process and its JVM, without the executors'.",
    ]
    with tempfile.TemporaryDirectory(prefix="thalweg-bench-") as name:
        folder = Path(name)
        if EXECUTORS in p.only:
            rows = _cluster_rows(p, folder, progress)
            progress("one tick in more and more tasks")
            tasks = task_rows((p.events, 5 * p.events), p.tasks, p.seed, folder / "tasks")
        if OBJECTS in p.only:
            progress("state in an object store")
            stored = store_rows(p.stored_events, p.ticks, p.seed, folder / "stored")
        if STARTS in p.only:
            progress("starts")
            stored += restart_rows(p.state_mb, p.seed, folder / "starts")
        if KAFKA in p.only:
            progress("Kafka")
            here = folder / "kafka"
            kafka = kafka_rows(p.kafka_events, p.filters, p.seed, here, p.kafka_runs)
    on_paper: list[dict[str, Any]] = []
    if rows:
        paper = estimate(rows, tasks, p.events)
        on_paper = paper.rows
        notes += [
            "What a task costs, by the number of tasks P, from the longest of each: "
            f"{fitted(tasks)}.",
            *paper.notes,
        ]
    return Report(
        "scale",
        "From two cores to many",
        asdict(p),
        [*rows, *tasks, *stored, *kafka, *on_paper],
        [*(goals(rows) if rows else []), *_goals_of_kafka(kafka), *_goals_of_store(stored)],
        notes,
    )


def _cluster_rows(p: Parameters, folder: Path, progress: Progress) -> list[dict[str, Any]]:
    """All ways in, on so many executors of one core each."""
    rows = []
    made = Events(p.events, p.ticks + 1, p.seed, folder / "events")
    for executors in p.executors:
        with warmed(spark_session(f"local-cluster[{executors},1,2048]")) as spark:
            _run_in(spark.sparkContext, p.warm_jobs)
            for way in (PUSHES, BY_DRIVER, IN_TASKS):
                progress(f"{way}, {executors} executors")
                here = folder / f"{way}-{executors}".replace(" ", "-")
                rows += Measured(spark, executors, made, here, p).rows(way)
    return rows


def _run_in(context: Any, jobs: int) -> None:
    """A site's JVM has run thousands of jobs, and a job costs one that has run few three times as
    much: code that is still interpreted, and the compiler."""
    nothing = context.parallelize([], context.defaultParallelism)
    for _ in range(jobs):
        nothing.mapPartitions(list).collect()


def goals(rows: list[dict[str, Any]]) -> list[Goal]:
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
    return found


def _goals_of_kafka(kafka: list[dict[str, Any]]) -> list[Goal]:
    found = []
    for row in [r for r in kafka if r["source"] == "kafka"][-1:]:
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
