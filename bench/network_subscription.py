"""A subscription over loopback: rows that a home has, at a reader in another process.

A local read of the same rows stands beside it. A *mirror* is a reader that makes them a stream of
its own, durably: its CPU is that of landing and of a tick as well.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from bench.measure import Stopwatch, process_cpu_s
from bench.nodes import NodeProcess, await_, network
from thalweg.cql import compile_script
from thalweg.engine.site import IN_PROCESS, open_site
from thalweg.engine.site.publications import Publications
from thalweg.plan.windows import BEGINNING
from thalweg.runtime.data.client import DataClient
from thalweg.runtime.data.messages import Open, Opened, Read

SCHEMA = "CREATE STREAM S (k BIGINT, price DOUBLE, note VARCHAR) TIMESTAMP BY ts BIGINT"
FEW = "SELECT ISTREAM k FROM S [Now] WHERE k < 0"
ALL = "SELECT COUNT(*) AS n FROM S [Now]"  # a condition would be judged at home
KEYS = 1_000_000
TUPLE_BYTES = 100
NOTE_BYTES = TUPLE_BYTES - 3 * 8
INSTANTS = 1_000  # of a batch


def batches(rows: int, batch: int, seed: int) -> Iterator[pl.DataFrame]:
    random = np.random.default_rng(seed)
    letters = random.integers(ord("a"), ord("z") + 1, (1_000, NOTE_BYTES), dtype=np.uint8)
    notes = pl.Series([bytes(x).decode() for x in letters])
    for number in range(rows // batch):
        yield pl.DataFrame(
            {
                "ts": np.sort(random.integers(0, INSTANTS, batch)) + number * INSTANTS,
                "k": random.integers(0, KEYS, batch),
                "price": random.random(batch) * 1_000,
                "note": notes[random.integers(0, len(notes), batch)],
            }
        )


def measure(folder: Path, rows: int, batch: int, seed: int) -> list[dict[str, Any]]:
    last = rows // batch * INSTANTS
    with network(folder, 2) as (home, reader):
        home.cql(f"{SCHEMA}; CREATE QUERY progress AS {FEW}")
        # Who reads is there before the rows come, and reads when they are all there.
        client = DataClient(home.data)
        opened = client.ask(Open("S", "bench", 1, 0))
        assert isinstance(opened, Opened)
        publication = opened.publication
        reader.cql(f"CREATE QUERY counts AS {ALL}")
        reader.pause()
        for some in batches(rows, batch, seed):
            home.push("S", some)
        home.heartbeat("S", last)
        await_(lambda: home.frontier("progress") >= last, "the last tick")
        read = _read(home, client, publication, last)
        client.close()
        mirrored = _mirrored(home, reader, last)
    local = _local(home.folder, publication)
    return [local, read, mirrored]


def _row(
    reading: str, rows: int, seconds: float, publisher_s: float | None, reader_s: float
) -> dict[str, Any]:
    both = (publisher_s or 0.0, reader_s)
    return {
        "reading": reading,
        "rows": rows,
        "rows/s": rows / seconds,
        "MB/s": rows * TUPLE_BYTES / seconds / 1e6,
        "publisher's CPU s a million": "" if publisher_s is None else publisher_s / rows * 1e6,
        "reader's CPU s a million": reader_s / rows * 1e6,
        # What two cores of their own would give, whatever else this machine does.
        "rows a CPU s of the busier": rows / max(*both, 1e-9),
    }


def _read(home: NodeProcess, client: DataClient, publication: str, last: int) -> dict[str, Any]:
    watch, publisher, mine = Stopwatch(), home.cpu_s, process_cpu_s(os.getpid())
    count = 0
    for range_, rows in client.read(Read(publication, BEGINNING)):
        count += rows.height
        if range_.upto >= last:
            break
    mine = process_cpu_s(os.getpid()) - mine
    return _row("a subscription", count, watch.seconds, home.cpu_s - publisher, mine)


def _mirrored(home: NodeProcess, reader: NodeProcess, last: int) -> dict[str, Any]:
    watch, publisher, theirs = Stopwatch(), home.cpu_s, reader.cpu_s
    reader.go_on()
    await_(lambda: reader.frontier("counts") >= last, "the mirror")
    count = reader.get("/network/links")[0]["arrived"]
    spent = home.cpu_s - publisher, reader.cpu_s - theirs
    return _row("a mirror", count, watch.seconds, *spent)


def _local(folder: Path, publication: str) -> dict[str, Any]:
    """By the node's own engine, opened here once the node has stopped."""
    site = open_site(folder, compile_script, master=IN_PROCESS)
    try:
        watch, mine = Stopwatch(), process_cpu_s(os.getpid())
        pieces = Publications(site).read(publication, BEGINNING)
        count = sum(piece.rows.height for piece in pieces)
        mine = process_cpu_s(os.getpid()) - mine
        return _row("at home", count, watch.seconds, None, mine)
    finally:
        site.close()
