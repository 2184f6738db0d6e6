"""Small helpers for measuring: percentiles, processor time, peak memory, disk use."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import numpy as np


def percentile(values: Sequence[float], q: float) -> float:
    return float(np.percentile(np.asarray(values), q))


def disk_bytes(folder: Path) -> int:
    return sum(f.stat().st_size for f in folder.rglob("*") if f.is_file())


def family_bytes() -> int:
    """Proportional memory of this process and all its descendants (the JVM, Spark's workers)."""
    return sum(process_bytes(pid) for pid in _family())


def family_cpu_s() -> float:
    """Processor seconds of this process and all its descendants, also of those that ended."""
    # From the parent's number on: utime, stime, cutime and cstime are fields 14 to 17 of `stat`.
    ticks = sum(int(t) for fields in _family().values() for t in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def process_cpu_s(pid: int) -> float:
    """Processor seconds of one process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _family() -> dict[int, list[str]]:
    """Every process of the family, with the fields of its `stat` behind the name."""
    stats: dict[int, list[str]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            stats[int(entry.name)] = fields
    family = {_own_pid()}
    while grown := {p for p, of in stats.items() if int(of[1]) in family} - family:
        family |= grown
    return {pid: stats[pid] for pid in family}


def _own_pid() -> int:
    return int(Path("/proc/self").resolve().name)


def process_bytes(pid: int) -> int:
    """A process's own part of memory that it may share with others."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


class PeakMemory:
    """Samples the family's memory while the block runs."""

    def __init__(self, every_s: float = 0.5) -> None:
        self.peak_bytes = 0
        self._every_s = every_s
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def _sample(self) -> None:
        while not self._done.is_set():
            self.peak_bytes = max(self.peak_bytes, family_bytes())
            self._done.wait(self._every_s)

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._done.set()
        self._thread.join()


class Stopwatch:
    def __init__(self) -> None:
        self._began = time.perf_counter()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._began


class CpuWatch:
    """Processor seconds of the family: what others do on the machine hardly shows in them."""

    def __init__(self) -> None:
        self._began = family_cpu_s()

    @property
    def seconds(self) -> float:
        return family_cpu_s() - self._began
