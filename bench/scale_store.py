"""State on a disk and in an object store: ticks, requests and bytes, and going on elsewhere.

The store is a real S3 server on loopback. All tasks run in this process, so that all requests are
counted; the disk is measured in the same way, durable.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from tests.engine.s3_server import BUCKET, VERSITYGW, S3Server, credentials

from bench.measure import Stopwatch, disk_bytes
from bench.scale_events import Events
from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.state.remote.objects import Objects, objects_at
from thalweg.engine.shared.tick.executors import InProcess

DISK, STORE = "local disk", "object store"
JOINS = 8
TASKS = 2
_GB = 1e9
_FEW = 500


def store_rows(sizes: tuple[int, ...], ticks: int, seed: int, folder: Path) -> list[dict[str, Any]]:
    """`sizes` are new events a tick. Nothing where there is no S3 server."""
    if not VERSITYGW.exists():
        return []
    server = S3Server(folder / "s3")
    try:
        server.wait()
        with environment(credentials(server.port)):
            rows = []
            for events in sizes:
                made = Events(events, ticks + 1, seed, folder / f"events-{events}")
                for where in (DISK, STORE):
                    url = f"s3://{BUCKET}/{uuid.uuid4().hex}" if where == STORE else ""
                    rows += _measured(made, where, url, folder / f"{where}-{events}")
            return rows
    finally:
        server.stop()
        objects_at.cache_clear()


def _measured(made: Events, where: str, url: str, folder: Path) -> list[dict[str, Any]]:
    counted = Requests(objects_at(url)) if url else None
    engine = _opened(made, url, folder / "here")
    pushes, ticks, in_ticks = [], [], []
    for number, tick in enumerate(made._ticks):
        watch = Stopwatch()
        for name, rows in tick.items():
            engine.push(name, rows)
        pushes.append(watch.seconds)
        before, watch = counted.taken() if counted else None, Stopwatch()
        engine.tick()
        ticks.append(watch.seconds)
        if counted is not None and before is not None and number:
            in_ticks.append(counted.taken() - before)
    engine.close()
    state = disk_bytes(folder / "here" / "segments")
    row = {
        "what": "store",
        "source": where,
        "events": made.a_tick,
        "tasks": TASKS,
        "median push s": median(pushes[1:]),
        "median tick s": median(ticks[1:]),
    }
    for kind in ("put", "create", "get", "bytes put") if in_ticks else ():
        row[f"{kind} a tick"] = median(counts[kind] for counts in in_ticks)
    return [row, _restart(made, where, url, folder, state)]


def _restart(made: Events, where: str, url: str, folder: Path, state: int) -> dict[str, Any]:
    """To the end of a first tick with few events, which needs all of the state: with a store on an
    empty disk, else where it was."""
    there = folder / ("elsewhere" if url else "here")
    if url:
        shutil.rmtree(folder / "here")
    watch = Stopwatch()
    engine = _opened(made, url, there)
    opened_s = watch.seconds
    for name, rows in made._ticks[-1].items():
        engine.push(name, rows.head(_FEW).with_columns(rows["ts"].head(_FEW) + 1_000))
    watch = Stopwatch()
    engine.tick()
    first_s = watch.seconds
    engine.close()
    return {
        "what": "restart",
        "source": where,
        "events": made.a_tick,
        "state bytes": state,
        "seconds": opened_s + first_s,
        "open s": opened_s,
        "first tick s": first_s,
        "s/GB": (opened_s + first_s) / max(state, 1) * _GB,
    }


def _opened(made: Events, url: str, folder: Path) -> SharedEngine:
    engine = SharedEngine(folder, InProcess(TASKS), objects=url, rows_for_more_tasks=0)
    compiled = made.script(JOINS)
    for stream in compiled.catalog.streams():
        engine.add_stream(stream)
    engine.add_queries(compiled.queries)
    return engine


class Requests:
    """Counts what one client of a store asks for, by kind."""

    def __init__(self, objects: Objects) -> None:
        self._counts: Counter[str] = Counter()
        self._objects = objects
        for kind in ("put", "create", "get", "keys"):
            setattr(objects, kind, self._counted(kind, getattr(objects, kind)))

    def _counted(self, kind: str, real: Any) -> Any:
        def counted(*args: Any) -> Any:
            self._counts[kind] += 1
            return real(*args)

        return counted

    def taken(self) -> Counter[str]:
        return Counter({**self._counts, "bytes put": self._objects.bytes_put})


@contextmanager
def environment(values: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name)
            else:
                os.environ[name] = value
