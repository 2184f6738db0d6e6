"""The native engine: queries as plain Spark Structured Streaming, the baseline of every benchmark.

It takes select-project-join over Now, Range and Unbounded, as a relation or under ISTREAM, and
refuses everything else with a reason (`Unsupported`).
"""

from thalweg.engine.native.limits import check
from thalweg.engine.native.plain import Measured, measure, start
from thalweg.engine.native.replay import run, run_tasks
from thalweg.engine.native.task import Settings, Task
from thalweg.engine.native.unsupported import Unsupported

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
