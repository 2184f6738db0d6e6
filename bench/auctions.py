"""Auction events for benches: items open once and close once, half of all events each.

No two equal rows ever meet at one instant, so that systems without netting say the same as we do.
A tick is a second of event time.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

STREAMS = ("O", "C")
SCHEMA = """
CREATE STREAM O (itemID BIGINT, sellerID BIGINT, price DOUBLE) TIMESTAMP BY ts BIGINT;
CREATE STREAM C (itemID BIGINT, buyerID BIGINT) TIMESTAMP BY ts BIGINT;
"""
INSTANTS = 1_000  # of a tick
PRICES = 1_000.0
SELLERS = 100_000
BUYERS = 10_000

Batch = dict[str, pl.DataFrame]


def batches(events: int, seed: int, longest_s: int) -> Iterator[Batch]:
    """Tick by tick without end; an item closes within `longest_s` seconds.

    Some of the items that close in the beginning were opened before time began.
    """
    random = np.random.default_rng(seed)
    half = events // 2
    due = np.empty((0, 2), np.int64)  # (instant, item) of all that are open
    tick = -longest_s
    while True:
        opened = _opened(random, half, tick)
        closing = opened["ts"].to_numpy() + random.integers(1, longest_s * INSTANTS, half)
        due = np.concatenate([due, np.column_stack([closing, opened["itemID"].to_numpy()])])
        now = due[:, 0] < (tick + 1) * INSTANTS
        closed, due = due[now], due[~now]
        if tick >= 0:
            yield {"O": opened, "C": _closed(random, closed)}
        tick += 1


def _opened(random: np.random.Generator, half: int, tick: int) -> pl.DataFrame:
    stamps = np.sort(random.integers(0, INSTANTS, half)) + tick * INSTANTS
    return pl.DataFrame(
        {
            "ts": stamps,
            "itemID": np.arange(half) + tick * half,
            "sellerID": random.integers(0, SELLERS, half),
            "price": random.random(half) * PRICES,
        }
    )


def _closed(random: np.random.Generator, closed: np.ndarray) -> pl.DataFrame:
    closed = closed[np.argsort(closed[:, 0], kind="stable")]
    buyers = random.integers(0, BUYERS, len(closed))
    return pl.DataFrame({"ts": closed[:, 0], "itemID": closed[:, 1], "buyerID": buyers})


def write_parquet(batch: Batch, number: int, folder: Path) -> None:
    """A file of each stream for a tick."""
    for stream, rows in batch.items():
        (folder / stream).mkdir(parents=True, exist_ok=True)
        rows.write_parquet(folder / stream / f"{number:06d}.parquet")


def append_csv(batch: Batch, parts: int, folder: Path) -> None:
    """A file of each stream for each reader, all in order of time: rows are dealt in turn."""
    for stream, rows in batch.items():
        (folder / stream).mkdir(parents=True, exist_ok=True)
        for part in range(parts):
            with (folder / stream / f"{part}.csv").open("ab") as file:
                rows.gather_every(parts, part).write_csv(file, include_header=False)


def parquet_files(folder: Path) -> list[dict[str, Path]]:
    """The files of each tick, by stream."""
    of = {s: sorted((folder / s).iterdir()) for s in STREAMS}
    return [dict(zip(of, files, strict=True)) for files in zip(*of.values(), strict=True)]
