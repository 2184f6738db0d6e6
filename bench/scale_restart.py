"""How long a start takes, by how much state there is: where it was, and on an empty machine.

The state is two windows that hold all that has come. It is made on a disk and then put into an
object store, on loopback; a start ends with the first tick, whose few tuples probe all of it.
"""

from __future__ import annotations

import shutil
import uuid
from itertools import islice
from pathlib import Path
from typing import Any

from tests.engine.s3_server import BUCKET, VERSITYGW, S3Server, credentials

from bench.auctions import SCHEMA, Batch, batches
from bench.measure import CpuWatch, Stopwatch, disk_bytes
from bench.scale_store import DISK, STORE, environment
from thalweg.cql import compile_script
from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.state.remote.objects import objects_at
from thalweg.engine.shared.tick.executors import InProcess

A_TICK = 1_000_000
_FEW = 500
_GB, _MB = 1e9, 1e6
# No row comes of it: what is measured is state.
_JOIN = (
    "CREATE QUERY all_that_came AS SELECT ISTREAM O.itemID, C.buyerID "
    "FROM O [Range 1 Day], C [Range 1 Day] WHERE O.itemID = C.itemID AND O.price < -1;"
)


def restart_rows(sizes_mb: tuple[int, ...], seed: int, folder: Path) -> list[dict[str, Any]]:
    """With at least so much state. Nothing where there is no S3 server."""
    if not sizes_mb or not VERSITYGW.exists():
        return []
    server = S3Server(folder / "s3")
    try:
        server.wait()
        with environment(credentials(server.port)):
            return [row for mb in sizes_mb for row in _rows(mb, seed, folder / str(mb))]
    finally:
        server.stop()
        objects_at.cache_clear()


def _rows(mb: int, seed: int, folder: Path) -> list[dict[str, Any]]:
    here, url = folder / "here", f"s3://{BUCKET}/{uuid.uuid4().hex}"
    last = _filled(mb * _MB, seed, here)
    state = disk_bytes(here / "segments")
    found = [_started(DISK, here, "", last, state, 1)]
    watch = Stopwatch()
    _opened(here, url).close()
    put_s = watch.seconds
    shutil.rmtree(here)
    found.append(_started(STORE, folder / "there", url, last, state, 2) | {"put s": put_s})
    shutil.rmtree(folder)
    return found


def _filled(state: float, seed: int, folder: Path) -> Batch:
    """Gives the last tick's tuples."""
    engine = _opened(folder, "")
    last: Batch = {}
    for batch in islice(batches(A_TICK, seed, 10), 10_000):
        for stream, rows in batch.items():
            engine.push(stream, rows)
        engine.tick()
        last = batch
        if sum(s.size for s in engine.manifest) >= state:
            break
    engine.close()
    return last


def _started(
    where: str, folder: Path, url: str, last: Batch, state: int, number: int
) -> dict[str, Any]:
    """`number`: the how-manieth start, whose tuples lie behind those of the one before."""
    watch, cpu = Stopwatch(), CpuWatch()
    engine = _opened(folder, url)
    opened_s = watch.seconds
    for stream, rows in last.items():
        few = rows.head(_FEW)
        engine.push(stream, few.with_columns(few["ts"] + 1_000 * number))
    watch = Stopwatch()
    engine.tick()
    first_s = watch.seconds
    engine.close()
    return {
        "what": "restart",
        "source": where,
        "state bytes": state,
        "seconds": opened_s + first_s,
        "open s": opened_s,
        "first tick s": first_s,
        "cpu s": cpu.seconds,
        "s/GB": (opened_s + first_s) / state * _GB,
    }


def _opened(folder: Path, url: str) -> SharedEngine:
    engine = SharedEngine(folder, InProcess(), objects=url, durable=False)
    compiled = compile_script(SCHEMA + _JOIN)
    for stream in compiled.catalog.streams():
        engine.add_stream(stream)
    engine.add_queries(compiled.queries)
    return engine
