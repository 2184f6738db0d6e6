"""Events of eight fields for `bench scale`: as frames, and as files of JSON lines."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from bench.auctions import batches
from thalweg.cql import compile_script

WINDOW_S = 10
COLUMNS = {
    "O": "itemID BIGINT, sellerID BIGINT, price DOUBLE, city VARCHAR, note VARCHAR, qty BIGINT, "
    "kind BIGINT",
    "C": "itemID BIGINT, buyerID BIGINT, paid DOUBLE, city VARCHAR, note VARCHAR, qty BIGINT, "
    "kind BIGINT",
}


class Events:
    """Some ticks of auctions: the first is pushed to begin with, the rest is what is measured."""

    def __init__(self, a_tick: int, ticks: int, seed: int, folder: Path) -> None:
        self.a_tick, self.folder = a_tick, folder
        drawn = np.random.default_rng(seed)
        self._ticks = [
            {name: widened(name, rows, drawn) for name, rows in batch.items()}
            for batch in islice(batches(a_tick, seed, WINDOW_S), ticks)
        ]
        folder.mkdir(parents=True)
        for name in COLUMNS:
            rest = pl.concat([tick[name] for tick in self._ticks[1:]])
            rest.write_ndjson(folder / f"{name}.json")

    @property
    def rest(self) -> int:
        return sum(rows.height for tick in self._ticks[1:] for rows in tick.values())

    def script(self, joins: int) -> Any:
        streams = "".join(
            f"CREATE STREAM {name} ({columns}) TIMESTAMP BY ts BIGINT FROM '{name}.json';\n"
            for name, columns in COLUMNS.items()
        )
        return compile_script(streams + distinct_joins(joins))

    def push_first(self, engine: Any) -> None:
        for name, rows in self._ticks[0].items():
            engine.push(name, rows)

    def push_rest(self, engine: Any) -> None:
        for tick in self._ticks[1:]:
            for name, rows in tick.items():
                engine.push(name, rows)


def distinct_joins(joins: int) -> str:
    """Each its own window and predicate: nothing to merge but what they probe."""
    return "".join(
        f"CREATE QUERY j{i} AS SELECT ISTREAM O.itemID, O.price, C.buyerID "
        f"FROM O [Range {WINDOW_S * 1000 - i}], C [Now] "
        f"WHERE O.itemID = C.itemID AND O.price > {i};\n"
        for i in range(joins)
    )


def widened(name: str, rows: pl.DataFrame, drawn: np.random.Generator) -> pl.DataFrame:
    """With columns that nobody joins by."""
    height = rows.height
    cities = drawn.integers(0, 500, height)
    more = [
        pl.Series("city", [f"city {c}" for c in cities], dtype=pl.String),
        pl.Series("note", [f"note {c * 7919 % 1000:06d}" for c in cities], dtype=pl.String),
        pl.Series("qty", drawn.integers(1, 9, height)),
        pl.Series("kind", drawn.integers(0, 4, height)),
    ]
    if name == "C":
        more.insert(0, pl.Series("paid", drawn.random(height) * 1000))
    return rows.with_columns(more)
