"""Where the driver's processor time in ticks goes: by phase, Python's and its JVM's apart.

Of the JVM, its compiler and its collector are told apart by the names of its threads: the former
is over once the same code has run often enough.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from thalweg.engine.shared.tick.commit import Commit
from thalweg.engine.shared.tick.delivery import Delivery
from thalweg.engine.shared.tick.ticks import Ticks

_PHASES = (
    ("cut", Ticks, "write_down"),
    ("run", Ticks, "_execute"),
    ("deliver", Delivery, "__call__"),
    ("commit", Commit, "__call__"),
)
_GROUPS = (("C1 ", "compiler"), ("C2 ", "compiler"), ("GC", "collector"), ("G1", "collector"))


class DriverPhases:
    """Processor seconds by (phase, who), while `noting`."""

    def __init__(self, jvm: int) -> None:
        self._jvm = jvm
        self.seconds: Counter[tuple[str, str]] = Counter()
        self.own_s = 0.0  # that went into looking; not the driver's

    @contextmanager
    def noting(self) -> Iterator[None]:
        real = [(owner, name, getattr(owner, name)) for _, owner, name in _PHASES]
        for phase, owner, name in _PHASES:
            setattr(owner, name, self._noted(phase, getattr(owner, name)))
        try:
            yield
        finally:
            for owner, name, function in real:
                setattr(owner, name, function)

    def _noted(self, phase: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*args: Any, **options: Any) -> Any:
            began = time.process_time()
            jvm, python = jvm_cpu_s(self._jvm), time.process_time()
            try:
                return real(*args, **options)
            finally:
                self.seconds[phase, "Python"] += (ended := time.process_time()) - python
                for who, seconds in jvm_cpu_s(self._jvm).items():
                    self.seconds[phase, who] += seconds - jvm[who]
                self.own_s += python - began + time.process_time() - ended

        return noted

    def row(self) -> dict[str, float]:
        """Only those that there were."""
        return {f"{p}: {who} cpu s": s for (p, who), s in sorted(self.seconds.items()) if s > 0}


def jvm_cpu_s(pid: int) -> dict[str, float]:
    """By kind of thread; a thread that has ended since is not among them."""
    found = {"JVM": 0.0, "JVM's compiler": 0.0, "JVM's collector": 0.0}
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            name, fields = (task / "stat").read_text().split("(", 1)[1].rsplit(")", 1)
        except OSError:
            continue
        kind = next((k for start, k in _GROUPS if name.startswith(start)), None)
        ticks = sum(int(t) for t in fields.split()[11:13])
        found["JVM" if kind is None else f"JVM's {kind}"] += ticks / os.sysconf("SC_CLK_TCK")
    return found
