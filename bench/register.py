"""Very many queries from a file: how soon they stand, what each takes, how they come back.

By the commands that users have: `thalweg submit` against `thalweg dev`, which is then killed and
started again.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.auctions import SCHEMA
from bench.measure import CpuWatch, Stopwatch, process_bytes
from bench.standing import draw, script
from thalweg.experiments.report import Goal, Progress, Report

FIRST = 6  # queries that are there when measuring begins: all shapes are among them
_THALWEG = (sys.executable, "-m", "thalweg.cli")


@dataclass(frozen=True)
class Parameters:
    queries: int = 100_000
    overlap: float = 1.0  # the part of them that are of a few shapes
    share: float = 0.0001  # of the prices that a query wants
    windows_s: tuple[int, ...] = (1, 2, 4)
    master: str = "local[2]"
    settling_s: float = 2.0  # before memory is looked at
    seed: int = 7

    @classmethod
    def quick(cls) -> Parameters:
        return cls(queries=10_000)


def run(parameters: Parameters, progress: Progress) -> Report:
    p = parameters
    queries = draw(p.queries + FIRST, p.overlap, p.share, p.windows_s, p.seed)
    with tempfile.TemporaryDirectory(prefix="thalweg-bench-") as name:
        folder = Path(name)
        (folder / "first.cql").write_text(SCHEMA + script(queries[:FIRST]))
        (folder / "queries.cql").write_text(script(queries[FIRST:]))
        progress("starting the service")
        with _service(folder, p.master) as (site, url, _):
            _submit(url, folder / "first.cql")
            before = _settled_bytes(site, p.settling_s)
            progress(f"submitting {p.queries:,} queries")
            watch, cpu = Stopwatch(), CpuWatch()
            _submit(url, folder / "queries.cql")
            submit_s, submit_cpu_s = watch.seconds, cpu.seconds
            after = _settled_bytes(site, p.settling_s)
        progress("starting it again")
        cpu = CpuWatch()
        with _service(folder, p.master) as (site, _, start_s):
            start_cpu_s = cpu.seconds
            again = _settled_bytes(site, p.settling_s)
    row = {
        "queries": p.queries,
        "submit s": submit_s,
        "submit CPU s": submit_cpu_s,
        "bytes each": (after - before) / p.queries,
        "start s": start_s,
        "start CPU s": start_cpu_s,
        "bytes each after the start": (again - before) / p.queries,
    }
    goals = [
        Goal("submit", submit_s, 60, "s", at_least=False),
        Goal("memory of a query", row["bytes each"], 2_000, "bytes", at_least=False),
        Goal("start after kill -9", start_s, 30, "s", at_least=False),
        Goal("then, of a query", row["bytes each after the start"], 2_000, "bytes", at_least=False),
    ]
    return Report("register", "Very many queries from a file", asdict(p), [row], goals)


@contextmanager
def _service(folder: Path, master: str) -> Iterator[tuple[int, str, float]]:
    """A service's process, its address, and the seconds until it answered; killed at the end."""
    options = ("--port", "0", "--data-dir", str(folder / "data"), "--master", master, "--json")
    watch = Stopwatch()
    with (folder / "log").open("a") as log:
        service = subprocess.Popen(
            [*_THALWEG, "dev", *options], stdout=subprocess.PIPE, stderr=log, text=True
        )
    try:
        assert service.stdout is not None
        line = service.stdout.readline()
        if not line:
            raise RuntimeError(f"the service did not start: {(folder / 'log').read_text()}")
        yield service.pid, json.loads(line)["url"], watch.seconds
    finally:
        service.kill()
        service.wait()


def _submit(url: str, file: Path) -> None:
    done = subprocess.run(
        [*_THALWEG, "submit", "--url", url, str(file)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"submit failed: {done.stderr}")


def _settled_bytes(site: int, settling_s: float) -> int:
    """The memory of the service's own process when it has come to rest."""
    time.sleep(settling_s)
    return process_bytes(site)
