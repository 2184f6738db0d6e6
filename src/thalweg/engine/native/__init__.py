"""The native engine: queries as plain Spark Structured Streaming, the baseline of every benchmark.

It takes select-project-join over Now, Range and Unbounded, as a relation or under ISTREAM, and
refuses everything else with a reason (`Unsupported`).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from thalweg.engine.native.limits import check
from thalweg.engine.native.unsupported import Unsupported

if TYPE_CHECKING:
    from thalweg.engine.native.plain import Measured, measure, start
    from thalweg.engine.native.replay import run, run_tasks
    from thalweg.engine.native.task import Settings, Task

__all__ = [
    "Measured",
    "Settings",
    "Task",
    "Unsupported",
    "check",
    "measure",
    "run",
    "run_tasks",
    "start",
]

# Who only asks what it takes, as planners do, need not import Spark.
_WITH_SPARK = {
    **dict.fromkeys(("Measured", "measure", "start"), "plain"),
    **dict.fromkeys(("run", "run_tasks"), "replay"),
    **dict.fromkeys(("Settings", "Task"), "task"),
}


def __getattr__(name: str) -> Any:
    if name not in _WITH_SPARK:
        raise AttributeError(name)
    return getattr(import_module(f"{__name__}.{_WITH_SPARK[name]}"), name)
