"""On a standalone cluster with speculation on: what the doctor sees, the same rows, and a task that
runs twice.

`python -m tests.engine.standalone_days FOLDER` raises if something is not as it should be.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from tests.conformance.case_files import all_cases
from tests.conformance.runner import check
from tests.engine.shared.adapter import shared_engine
from tests.engine.shared.tick.bad_days import TICKS, executor_of, workers_of
from tests.engine.shared.tick.joining import Joining
from tests.engine.standalone_cluster import StandaloneCluster

from thalweg.engine.cluster_checks import check_cluster
from thalweg.engine.session import spark_session
from thalweg.engine.shared.tick import residents
from thalweg.engine.shared.tick.executors import InProcess, OnResidents

CASES = all_cases()[3::60]
SETTINGS = {
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.multiplier": "1.5",
    "spark.speculation.quantile": "0.5",
}


def main(folder: Path) -> None:
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    cluster = StandaloneCluster(folder / "cluster")
    try:
        _doctor(cluster.master, folder)
        _rows(cluster, folder)
    finally:
        cluster.stop()


def _doctor(master: str, folder: Path) -> None:
    found = {check.what: check for check in check_cluster(master, folder / "data")}
    _say(str(found))
    assert {c.verdict for c in found.values()} == {"ok"}
    assert "2 executors" in found["master"].found
    assert not list((folder / "data").iterdir())


def _rows(cluster: StandaloneCluster, folder: Path) -> None:
    residents.START_S = 60.0
    expected = Joining(folder / "expected", InProcess())
    for number in range(TICKS):
        expected.tick(number)
    with spark_session(cluster.master, **SETTINGS) as spark:
        context = spark.sparkContext
        context.parallelize(range(2), 2).count()
        executor = OnResidents(context, tasks=2)
        for rows_for_more_tasks in (0, 1 << 40):
            engine = partial(
                shared_engine,
                tuples_per_tick=1_000,
                executor=executor,
                rows_for_more_tasks=rows_for_more_tasks,
            )
            for case in CASES:
                check(engine, case)
        assert executor.residents.ticks >= len(CASES)
        _say(f"{executor.residents.ticks} ticks at residents")
        joining = Joining(folder / "twice", executor)
        for number in range(TICKS):
            joining.engine.ticks._settings = joining.small
            joining.tick(number) if number != 3 else _twice(cluster, joining, executor, context)
        assert joining.said == expected.said
        executor.close()


def _twice(cluster, joining, executor, context) -> None:  # type: ignore[no-untyped-def]
    """A tick in two tasks, of which one machine's does not get any further: a copy of it runs on
    the other one."""
    executor.residents.release()
    joining.engine.ticks._settings = replace(joining.small, rows_for_more_tasks=0)
    while context.statusTracker().getActiveJobsIds():
        time.sleep(0.05)
    while len({executor_of(w) for w in workers_of(cluster.processes)}) < 2:
        context.parallelize(range(2), 2).foreach(lambda _: time.sleep(1))
    found = workers_of(cluster.processes)
    machine = min(executor_of(w) for w in found)
    stopped = [w for w in found if executor_of(w) == machine]
    for worker in stopped:
        os.kill(worker, signal.SIGSTOP)
    joining.tick(3)  # would wait for ever without the copy
    _say("a copy has done it")
    for worker in stopped:
        with suppress(ProcessLookupError):
            os.kill(worker, signal.SIGCONT)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
