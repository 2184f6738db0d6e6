"""Resident tasks as Spark jobs: how they are launched, and how many slots there are for them."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING

from thalweg.engine.shared.tick.resident_task import Post, reside
from thalweg.engine.shared.tick.residents import Launch, Residents

if TYPE_CHECKING:
    from pyspark import SparkContext

_making = threading.Lock()
_made: tuple[SparkContext, Residents] | None = None  # a process has one context at a time


def residents_of(context: SparkContext) -> Residents:
    """Those of a context: all engines on it share them, so that together they leave a slot free."""
    global _made
    with _making:
        if _made is None or _made[0] is not context:
            conf = context.getConf()
            host = conf.get("spark.driver.host") or "127.0.0.1"
            bind = conf.get("spark.driver.bindAddress") or host
            made = Residents(_launcher(context), lambda: slots_of(context), host=host, bind=bind)
            _made = context, made
        return _made[1]


def slots_of(context: SparkContext) -> int:
    """How many tasks can run at once, now; none where Spark would run copies of residents.

    Speculation copies a task when others of its stage are done, and a resident's stage has no
    others; or when it is told a duration, which every resident exceeds.
    """
    conf = context.getConf()
    is_on = (conf.get("spark.speculation") or "false").lower() == "true"
    if is_on and conf.get("spark.speculation.task.duration.threshold") is not None:
        return 0
    java = context._jsc.sc()
    profile = java.resourceProfileManager().defaultResourceProfile()
    return int(java.maxNumConcurrentTasks(profile))


def _launcher(context: SparkContext) -> Launch:
    def launch(post: Post) -> None:
        def stay(_: int, rows: Iterable[int]) -> list[int]:
            from pyspark import TaskContext

            list(rows)  # a worker is only used again if its input was read to the end
            running = TaskContext.get()
            reside(post, 0 if running is None else running.attemptNumber())
            return []

        context.setLocalProperty("spark.job.description", "waits for ticks")
        context.parallelize([], 1).mapPartitionsWithIndex(stay).collect()

    return launch
