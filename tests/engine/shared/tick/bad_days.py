"""Bad days of a cluster of two executors: the tick's rows are the same.

`python -m tests.engine.shared.tick.bad_days FOLDER` raises if they are not.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path

from tests.engine.shared.tick.joining import Joining

from thalweg.engine.session import spark_session
from thalweg.engine.shared.tick import residents
from thalweg.engine.shared.tick.executors import InProcess, OnResidents

TICKS = 6


def main(folder: Path) -> None:
    expected = Joining(folder / "expected", InProcess())
    for number in range(TICKS):
        expected.tick(number)
    assert len(expected.said) > 500
    residents.START_S = 60.0  # however busy the machine is
    cache = {"spark.executorEnv.THALWEG_CACHE": str(folder / "cache")}
    with spark_session("local-cluster[2,1,1024]", **cache) as spark:
        context = spark.sparkContext
        context.parallelize(range(2), 2).count()
        executor = OnResidents(context, tasks=2)
        days: dict[str, Callable[[Joining], None]] = {
            "a worker is killed in the middle of a tick": lambda j: _killed(j, executor),
            "an executor is killed in the middle of a tick": lambda j: _killed(
                j, executor, is_executor=True
            ),
            "a task is slow": lambda j: _slow_task(j, executor, context),
        }
        for day, bad in days.items():
            joining = Joining(folder / day.replace(" ", "-"), executor)
            joining.engine.ticks._settings = joining.small
            for number in range(TICKS):
                executor.residents._not_before = 0.0
                joining.tick(number) if number != 3 else bad(joining)
            assert joining.said == expected.said, day
            sys.stdout.write(f"{day}: {executor.residents.ticks} ticks at residents so far\n")
        _no_common_disk(folder, executor, expected)
        assert executor.residents.ticks >= TICKS  # not while an executor is being replaced
        executor.close()


def _no_common_disk(folder: Path, executor: OnResidents, expected: Joining) -> None:
    """Executors have the object store and a folder of their own. Half of the ticks are jobs of two
    tasks, and in the middle the driver goes on at an empty machine."""
    store = f"file://{folder / 'store'}"
    joining = first = Joining(folder / "driver", executor, objects=store, rows_for_more_tasks=0)
    for number in range(TICKS):
        if number == TICKS // 2:
            outlet = joining.outlet
            joining = Joining(folder / "second", executor, outlet, objects=store)
            joining.engine.ticks._settings = joining.small
        joining.tick(number)
    assert joining.said == expected.said
    # The driver has no need of state, but of results, few of which stand in files of state.
    here = {file.name for file in (folder / "driver" / "segments").iterdir()}
    assert here <= first.engine.store.outputs.files_of_state()
    assert list((folder / "cache").glob("*/segments/*.arrow"))


def _killed(joining: Joining, executor: OnResidents, *, is_executor: bool = False) -> None:
    (worker,) = executor.residents.processes()
    os.kill(worker, signal.SIGSTOP)
    victim = executor_of(worker) if is_executor else worker
    with joining.ticking(3):
        time.sleep(0.3)
        os.kill(victim, signal.SIGKILL)
        if victim != worker:
            os.kill(worker, signal.SIGKILL)  # as when the machine is gone


def _slow_task(joining: Joining, executor: OnResidents, context) -> None:  # type: ignore[no-untyped-def]
    """A tick in two tasks, of which one stands still for a while. Spark does not copy it, since the
    other executor is on the same machine."""
    executor.residents.release()
    while context.statusTracker().getActiveJobsIds():
        time.sleep(0.05)
    joining.engine.ticks._settings = replace(joining.small, rows_for_more_tasks=0)
    while (
        len(machines := {executor_of(w) for w in workers_of({os.getpid()})}) < 2
    ):  # an executor was replaced
        context.parallelize(range(2), 2).foreach(lambda _: time.sleep(1))
    stopped = [w for w in workers_of({os.getpid()}) if executor_of(w) == min(machines)]
    for worker in stopped:
        os.kill(worker, signal.SIGSTOP)
    with joining.ticking(3):
        time.sleep(2)
        for worker in stopped:
            os.kill(worker, signal.SIGCONT)
    joining.engine.ticks._settings = joining.small


def _parents() -> dict[int, tuple[int, str]]:
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                name, rest = (entry / "stat").read_text().rsplit(")", 1)
                found[int(entry.name)] = int(rest.split()[1]), name.split("(", 1)[1]
            except OSError:
                continue
    return found


def executor_of(process: int) -> int:
    """The JVM above a worker: it is the daemon's parent."""
    parents = _parents()
    while parents[process][1] != "java":
        process = parents[process][0]
    return process


def workers_of(processes: Collection[int]) -> list[int]:
    """Python processes that a worker daemon below these processes has forked."""
    parents = _parents()
    return [
        p
        for p, (above, name) in parents.items()
        if name.startswith("python")
        and parents.get(above, (0, ""))[1].startswith("python")
        and parents.get(parents[above][0], (0, ""))[1] == "java"
        and _is_below(p, processes, parents)
    ]


def _is_below(process: int, above: Collection[int], parents: dict[int, tuple[int, str]]) -> bool:
    while process > 1 and process in parents:
        if process in above:
            return True
        process = parents[process][0]
    return False


if __name__ == "__main__":
    main(Path(sys.argv[1]))
