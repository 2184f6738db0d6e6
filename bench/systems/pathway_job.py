"""Runs in the environment that has Pathway: all queries as one dataflow, with what they have in
common shared by hand.

The streams are joined once; the queries' constants are tables that are joined by seller, and by the
bin of the price, as an expert would. Pathway reads all files at once and never forgets an item, so
it has nothing to do tick by tick, and no state to expire: both are in its favour.

Prints one line of JSON: the seconds until the dataflow was built, and the seconds and processor
seconds from then on until it was done.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pathway as pw

from bench.measure import CpuWatch, Stopwatch


class Opened(pw.Schema):
    ts: int
    itemID: int  # noqa: N815
    sellerID: int  # noqa: N815
    price: float


class Closed(pw.Schema):
    ts: int
    itemID: int  # noqa: N815
    buyerID: int  # noqa: N815


def main(file: str) -> None:
    job = json.loads(Path(file).read_text())
    watch = Stopwatch()
    width = float(job["bin"])
    opened = pw.io.csv.read(job["data"] + "/O", schema=Opened, mode="static")
    closed = pw.io.csv.read(job["data"] + "/C", schema=Closed, mode="static")
    parts = []
    if job["sellers"]:
        table = _table(("query", "sellerID"), job["sellers"])
        met = opened.join(table, opened.sellerID == table.sellerID)
        parts.append(met.select(table.query, opened.itemID, opened.price, buyerID=-1))
    # Truncated, as `_bin` does it: the same bins on both sides.
    priced = opened.with_columns(bin=pw.cast(int, opened.price / width))
    if job["ranges"]:
        table = _table(("query", "low", "high", "bin"), _binned(job["ranges"], width))
        met = priced.join(table, priced.bin == table.bin).filter(
            (priced.price >= table.low) & (priced.price < table.high)
        )
        parts.append(met.select(table.query, priced.itemID, priced.price, buyerID=-1))
    if job["joins"]:
        table = _table(("query", "low", "high", "window", "bin"), _binned(job["joins"], width))
        longest = max(window for *_, window in job["joins"])
        pairs = priced.join(closed, priced.itemID == closed.itemID).select(
            priced.itemID,
            priced.price,
            priced.bin,
            closed.buyerID,
            age=closed.ts - priced.ts,
        )
        pairs = pairs.filter((pw.this.age >= 0) & (pw.this.age <= longest))
        met = pairs.join(table, pairs.bin == table.bin).filter(
            (pairs.price >= table.low) & (pairs.price < table.high) & (pairs.age <= table.window)
        )
        parts.append(met.select(table.query, pairs.itemID, pairs.price, pairs.buyerID))
    rows = parts[0] if len(parts) == 1 else parts[0].concat_reindex(*parts[1:])
    pw.io.csv.write(rows, job["out"])
    start_s = watch.seconds
    cpu, watch = CpuWatch(), Stopwatch()
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    measured = {"start_s": start_s, "seconds": watch.seconds, "cpu_s": cpu.seconds}
    sys.stdout.write(json.dumps(measured) + "\n")


def _table(names: tuple[str, ...], rows: list[tuple[float, ...]]) -> pw.Table:
    types = {n: float if n in ("low", "high") else int for n in names}
    return pw.debug.table_from_rows(pw.schema_from_types(**types), [tuple(r) for r in rows])


def _bin(price: float, width: float) -> int:
    return int(price / width)


def _binned(rows: list[list[float]], width: float) -> list[tuple[float, ...]]:
    return [
        (*row, number)
        for row in rows
        for number in range(_bin(row[1], width), _bin(row[2], width) + 1)
    ]


if __name__ == "__main__":
    main(sys.argv[1])
