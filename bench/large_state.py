"""A window of many gigabytes: what a tick and a restart cost, with memory bounded.

A stream is kept whole under the key of a join while tuples of another probe it. The engine runs in
a process that may allocate so much and no more (RLIMIT_DATA); what it maps from files does not
count. It is killed, and started again.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from bench.measure import disk_bytes, percentile
from thalweg.cql import compile_script
from thalweg.engine.site import IN_PROCESS, Site, open_site
from thalweg.engine.site.settings import SiteSettings
from thalweg.experiments.report import Goal, Progress, Report

SCRIPT = """
CREATE STREAM Held (k BIGINT, v BIGINT, note VARCHAR) TIMESTAMP BY ts BIGINT;
CREATE STREAM Asked (k BIGINT, n BIGINT) TIMESTAMP BY ts BIGINT;
CREATE QUERY found AS ISTREAM SELECT a.n, h.v, h.note
FROM Asked [Now] a, Held [Range 1000000000] h WHERE a.k = h.k;
"""
NOTE_BYTES = 72
ROW_BYTES = 3 * 8 + NOTE_BYTES  # about, as it comes


@dataclass(frozen=True)
class Parameters:
    gigabytes: float = 10.0  # of tuples
    rows_a_tick: int = 1_000_000
    probes: int = 1_000  # tuples of the other stream, in a tick
    ticks: int = 10  # that probe, before and after the restart
    limit_gb: float = 4.0  # of memory that is not mapped from files
    folder: str = ""  # for the data directory; a temporary one if empty

    @property
    def filling_ticks(self) -> int:
        return int(self.gigabytes * 1e9 / ROW_BYTES / self.rows_a_tick)

    @classmethod
    def quick(cls) -> Parameters:
        return cls(gigabytes=0.5)


def run(parameters: Parameters, progress: Progress) -> Report:
    p = parameters
    folder = Path(p.folder or tempfile.mkdtemp(prefix="thalweg-bench-"))
    try:
        progress(f"filling {p.gigabytes:g} GB")
        filled = _limited(_fill, p, folder)
        progress("starting it again")
        again = _limited(_again, p, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    rows = [{"phase": "filling", **filled}, {"phase": "after kill -9", **again}]
    goals = [
        Goal("rows missing", again["rows missing"], 0, "rows", at_least=False),
        Goal("a start with it", again["start s"], 10.0, "s", at_least=False),
        Goal(
            "memory at its peak", max(r["peak GB"] for r in rows), p.limit_gb, "GB", at_least=False
        ),
        Goal("a tick that probes it, CPU", again["median tick CPU s"], 0.5, "s", at_least=False),
    ]
    return Report("large-state", "A window of many gigabytes", asdict(p), rows, goals)


def _limited(
    function: Callable[[Parameters, Path], dict[str, Any]], p: Parameters, at: Path
) -> Any:
    """In a process of its own, which ends without a good-bye."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_child, args=(function, p, at, theirs))
    process.start()
    theirs.close()
    try:
        found = ours.recv()
    except EOFError:
        raise RuntimeError("the engine did not live within its memory") from None
    process.join()
    if isinstance(found, str):
        raise RuntimeError(found)
    return found


def _child(function: Callable[[Parameters, Path], Any], p: Parameters, at: Path, out: Any) -> None:
    most = int(p.limit_gb * 1e9)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    try:
        out.send(function(p, at))
    except BaseException as error:  # whatever it is, the parent is told
        out.send(f"{type(error).__name__}: {error}")
    finally:
        out.close()
        os._exit(9)


def _open(at: Path) -> Site:
    settings = SiteSettings(durable=False, tick_interval_s=0.0, tick_rows=5_000_000)
    return open_site(at, compile_script, master=IN_PROCESS, settings=settings)


def _fill(p: Parameters, at: Path) -> dict[str, Any]:
    site = _open(at)
    site.execute(SCRIPT)
    ticks = p.filling_ticks
    seconds, anonymous = [], 0
    began = time.perf_counter()
    for tick in range(ticks):
        site.push("Held", _held(p.rows_a_tick, tick))
        site.push("Asked", pl.DataFrame({"ts": [tick], "n": [tick], "k": [tick * p.rows_a_tick]}))
        start = time.perf_counter()
        site.settle(3_600)
        seconds.append(time.perf_counter() - start)
        anonymous = max(anonymous, _status("RssAnon"))
    filling = time.perf_counter() - began
    probing = _probe(site, p, ticks)
    return {
        "rows": ticks * p.rows_a_tick,
        "disk GB": disk_bytes(at) / 1e9,
        "start s": None,
        "filling s": filling,
        "median fill tick s": percentile(seconds, 50),
        "longest fill tick s": max(seconds),
        **_told(probing),
        "peak GB": max(anonymous, _status("RssAnon")) / 1e9,
    }


def _again(p: Parameters, at: Path) -> dict[str, Any]:
    start = time.perf_counter()
    site = _open(at)
    opened = time.perf_counter() - start
    ticks = p.filling_ticks
    probing = _probe(site, p, ticks + p.ticks)
    # Every tuple that asked has one partner; the last instant is not final.
    asked = ticks + (2 * p.ticks - 1) * p.probes
    return {
        "rows": ticks * p.rows_a_tick,
        "disk GB": disk_bytes(at) / 1e9,
        "start s": opened,
        **_told(probing),
        "peak GB": _status("RssAnon") / 1e9,
        "rows missing": asked - (site.queries()[0].rows or 0),
    }


@dataclass(frozen=True)
class _Tick:
    seconds: float
    cpu_s: float
    reads: int  # pages that had to be read from the disk


def _faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_majflt


def _told(ticks: list[_Tick]) -> dict[str, float]:
    return {
        "first tick s": ticks[0].seconds,
        "median tick s": percentile([t.seconds for t in ticks], 50),
        "median tick CPU s": percentile([t.cpu_s for t in ticks], 50),
        "median reads a tick": percentile([t.reads for t in ticks], 50),
        "longest tick s": max(t.seconds for t in ticks),
    }


def _probe(site: Site, p: Parameters, first: int) -> list[_Tick]:
    """Ticks in which few tuples of the other stream look for partners."""
    draw = np.random.default_rng(first)
    found = []
    for tick in range(first, first + p.ticks):
        keys = draw.integers(0, p.filling_ticks * p.rows_a_tick, p.probes)
        site.push("Held", pl.DataFrame({"k": [-1], "v": [0], "note": [""], "ts": [tick]}))
        numbers = np.arange(tick * p.probes, (tick + 1) * p.probes)  # no two rows are equal
        asked = {"k": keys, "n": numbers, "ts": np.full(p.probes, tick)}
        site.push("Asked", pl.DataFrame(asked))
        start, cpu, faults = time.perf_counter(), time.process_time(), _faults()
        site.settle(3_600)
        found.append(
            _Tick(time.perf_counter() - start, time.process_time() - cpu, _faults() - faults)
        )
    return found


def _held(rows: int, tick: int) -> pl.DataFrame:
    draw = np.random.default_rng(tick)
    first = tick * rows
    return pl.DataFrame(
        {
            "k": draw.permutation(np.arange(first, first + rows)),
            "v": draw.integers(0, 1 << 40, rows),
            "ts": np.full(rows, tick),
        }
    ).with_columns(note=pl.col("v").cast(pl.String).str.pad_start(NOTE_BYTES, "x"))


def _status(what: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{what}:"):
            return int(line.split()[1]) * 1024
    raise LookupError(what)
