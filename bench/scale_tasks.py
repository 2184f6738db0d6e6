"""One tick in more and more tasks: what the longest of them takes, with and without division."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from bench.scale_events import Events
from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.ingest import task_landing
from thalweg.engine.shared.ingest.task_landing import TaskLanding
from thalweg.engine.shared.tick.executors import InProcess
from thalweg.engine.shared.tick.runner import read_report

JOINS = 8
_REPEATS = 3


class Noting(InProcess):
    """Remembers what its tasks of the last tick took."""

    seconds: list[float]

    def run(self, packed: bytes, tasks: int, levels: int, shares: int) -> list[bytes]:
        reports = super().run(packed, tasks, levels, shares)
        self.seconds = [read_report(r).cpu_s for r in reports]
        return reports


def task_rows(
    sizes: Sequence[int], tasks: Sequence[int], seed: int, folder: Path, many: int = 10_000
) -> list[dict[str, Any]]:
    """`sizes` are numbers of new events; `many`, those of a piece that is divided."""
    return [
        row for events in sizes for row in _rows(events, tasks, seed, folder / str(events), many)
    ]


def _rows(
    events: int, tasks: Sequence[int], seed: int, folder: Path, many: int
) -> list[dict[str, Any]]:
    made = Events(events, _REPEATS + 1, seed, folder / "events")
    rows = []
    for count in tasks:
        for is_divided in (False, True):
            task_landing.MANY = many if is_divided else 1 << 40
            here = folder / f"{count}-{is_divided}"
            longest, total = _measured(made, count, here)
            rows.append(
                {
                    "what": "task",
                    "source": "divided" if is_divided else "read whole",
                    "tasks": count,
                    "events": events,
                    "longest task cpu s": longest,
                    "all tasks cpu s": total,
                }
            )
    task_landing.MANY = many
    return rows


def _measured(made: Events, tasks: int, folder: Path) -> tuple[float, float]:
    executor = Noting(tasks)
    engine = SharedEngine(folder, executor, durable=False, rows_for_more_tasks=0)
    compiled = made.script(JOINS)
    for stream in compiled.catalog.streams():
        engine.add_stream(stream)
    engine.add_queries(compiled.queries)
    found = []
    for tick in made._ticks:
        for name, rows in tick.items():
            _land(engine, name, rows)
        engine.tick()
        found.append((max(executor.seconds), sum(executor.seconds)))
    engine.close()
    return min(f[0] for f in found[1:]), min(f[1] for f in found[1:])


def _land(engine: SharedEngine, name: str, rows: pl.DataFrame) -> None:
    stream, landing = engine.streams[name], engine.landing
    place = landing.place(stream, 0)
    keys = landing.keys(stream)
    task = TaskLanding(stream, landing.folder, 0, place, keys)
    for first in range(0, rows.height, 65_536):
        task.take(rows.slice(first, 65_536))
    landing.take(stream, [task.close()])
