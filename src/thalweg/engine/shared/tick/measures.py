"""What a tick did and where its time went."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from thalweg.engine.shared.state.names import ENDED, result_run
from thalweg.engine.shared.tick.messages import TaskReport


@dataclass(frozen=True)
class Tick:
    """What a tick did, for people and for statistics."""

    number: int
    rows_in: int
    rows_out: int
    seconds: float
    tasks: int
    by_query: Mapping[str, float]  # seconds of the tasks' time, by query
    by_phase: Mapping[str, float]  # seconds of the tick's time; `phases_of` names them
    on_cpu: float = 1.0  # the share of the tasks' time in which they had a processor


def rows_by_run(reports: Iterable[TaskReport]) -> dict[str, int]:
    """Rows that runs have computed; of a group those that started."""
    found: dict[str, int] = {}
    for segment in (s for r in reports for s in r.results):
        of = result_run(segment.table)
        if of is not None and of[1] != ENDED:
            found[of[0]] = found.get(of[0], 0) + segment.rows
    return found


def share_on_cpu(reports: Iterable[TaskReport]) -> float:
    """Less than 1 where other jobs of the machine took the rest. (More, where a task has several
    threads, counts as 1.)"""
    busy_s = cpu_s = 0.0
    for report in reports:
        busy_s, cpu_s = busy_s + report.busy_s, cpu_s + report.cpu_s
    return min(1.0, cpu_s / busy_s) if busy_s > 0 and cpu_s > 0 else 1.0


def phases_of(marks: Sequence[float], busy_s: float) -> dict[str, float]:
    """Where a tick's time went; what its tasks did not use of the run is the executor's own."""
    cut, run, deliver, done = (b - a for a, b in pairwise(marks))
    tasks = min(busy_s, run)
    return {
        "cut": cut,
        "tasks": tasks,
        "executor": run - tasks,
        "deliver": deliver,
        "commit": done,
    }


def added(parts: Sequence[Mapping[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for part in parts:
        for name, seconds in part.items():
            total[name] = total.get(name, 0.0) + seconds
    return total
