"""Who runs a tick's tasks: this process, or Spark, in a job for each tick or in tasks that stay."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from thalweg.engine.shared.tick.resident_jobs import residents_of
from thalweg.engine.shared.tick.residents import NoResidents
from thalweg.engine.shared.tick.runner import REPORTS, Shipment, let_go, run_level, run_share

if TYPE_CHECKING:
    from pyspark import RDD, SparkContext

log = logging.getLogger(__name__)


class Executor(Protocol):
    """Runs one tick and returns the tasks' packed reports."""

    tasks: int

    def run(self, packed: bytes, tasks: int, levels: int, shares: int) -> list[bytes]:
        """Either of several tasks that have some of the rows each, or of some that share runs."""
        ...

    def each(self, do: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        """A task for each item, beside ticks: what they give, in the items' order."""
        ...


class InProcess:
    """All tasks one after the other in this process: for tests, and for looking closely."""

    def __init__(self, tasks: int = 1) -> None:
        self.tasks = tasks

    def run(self, packed: bytes, tasks: int, levels: int, shares: int) -> list[bytes]:
        reports = self._reports(packed, tasks, levels, shares)
        let_go(packed)
        return reports

    def _reports(self, packed: bytes, tasks: int, levels: int, shares: int) -> list[bytes]:
        if tasks == 1:
            return [run_share(packed, number) for number in range(shares)]
        inboxes: list[list[Shipment]] = [[] for _ in range(tasks)]
        for level in range(levels):
            shipments = [
                shipment
                for number in range(tasks)
                for shipment in run_level(packed, number, level, iter(inboxes[number]))
            ]
            inboxes = [[x for x in shipments if x[0] == n] for n in range(tasks)]
        return _reports(shipment for inbox in inboxes for shipment in inbox)

    def each(self, do: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        return [do(item) for item in items]


class OnSpark:
    """One Spark job per tick, a Python task per slice; between levels Spark shuffles shipments."""

    def __init__(self, context: SparkContext, tasks: int | None = None) -> None:
        self.context = context
        self.tasks = tasks or context.defaultParallelism
        self._nothing: dict[int, RDD[Shipment]] = {}  # by tasks: what their first level gets

    def run(self, packed: bytes, tasks: int, levels: int, shares: int) -> list[bytes]:
        width = shares if tasks == 1 else tasks
        if width not in self._nothing:
            self._nothing[width] = self.context.parallelize([], width)
        nothing = self._nothing[width]
        if tasks == 1:
            return list(nothing.mapPartitionsWithIndex(_share(packed)).collect())
        shipments = nothing.mapPartitionsWithIndex(_level(packed, 0))
        for level in range(1, levels):
            delivered = shipments.partitionBy(tasks, int)
            shipments = delivered.mapPartitionsWithIndex(_level(packed, level))
        return _reports(shipments.collect())

    def each(self, do: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        return list(self.context.parallelize(items, max(1, len(items))).map(do).collect())


class OnResidents:
    """Ticks of one level at tasks that stay (`residents`); others, and those that no such task can
    take at the moment, as a job each."""

    def __init__(self, context: SparkContext, tasks: int | None = None) -> None:
        self._jobs = OnSpark(context, tasks)
        self.tasks = self._jobs.tasks
        self.residents = residents_of(context)

    def run(self, packed: bytes, tasks: int, levels: int, shares: int) -> list[bytes]:
        if tasks == 1:
            try:
                return self.residents.run(packed, shares)
            except NoResidents as why:
                log.debug("a tick runs as a job: %s", why)
        else:
            self.residents.release()  # the job wants their slots
        return self._jobs.run(packed, tasks, levels, shares)

    def each(self, do: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        return self._jobs.each(do, items)

    def close(self) -> None:
        self.residents.close()


def _share(packed: bytes):  # type: ignore[no-untyped-def]
    def run(number: int, rows: Iterator[Shipment]) -> list[bytes]:
        list(rows)  # a worker is only used again if its input was read to the end
        report = run_share(packed, number)
        let_go(packed)
        return [report]

    return run


def _level(packed: bytes, level: int):  # type: ignore[no-untyped-def]
    def run(number: int, shipments: Iterator[Shipment]) -> Iterator[Shipment]:
        yield from run_level(packed, number, level, shipments)
        let_go(packed)

    return run


def _reports(shipments) -> list[bytes]:  # type: ignore[no-untyped-def]
    return [report for _, boxes in shipments for report in boxes[REPORTS]]
