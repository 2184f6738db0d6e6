"""A window join and a sum over it, tick by tick; what it says does not depend on who runs ticks."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from tests.engine.shared.adapter import Collect

from thalweg.cql import compile_script
from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.tick.executors import Executor

SCRIPT = """
CREATE STREAM O (item BIGINT, price DOUBLE) TIMESTAMP BY ts BIGINT;
CREATE STREAM C (item BIGINT, buyer BIGINT) TIMESTAMP BY ts BIGINT;
CREATE QUERY sold AS SELECT O.item, O.price, C.buyer FROM O [Range 250], C [Range 50]
    WHERE O.item = C.item;
CREATE QUERY spent AS SELECT C.buyer, SUM(O.price) AS total FROM O [Range 250], C [Range 50]
    WHERE O.item = C.item GROUP BY C.buyer;
"""
ROWS = 200


class Joining:
    def __init__(
        self, folder: Path, executor: Executor, outlet: Collect | None = None, **options: Any
    ) -> None:
        self.outlet = outlet or Collect()
        how = {"seconds_for_more_tasks": 1e9, **options}  # however slow the machine is
        self.engine = SharedEngine(folder, executor, outlet=self.outlet, durable=False, **how)
        self.given = self.engine.ticks._settings
        self.small = replace(self.given, rows_for_more_tasks=1 << 40)
        script = compile_script(SCRIPT)
        for stream in script.catalog.streams():
            self.engine.add_stream(stream)
        self.engine.add_queries(script.queries)

    def tick(self, number: int) -> None:
        drawn = np.random.default_rng(number)
        stamps = np.sort(drawn.integers(number * 100, (number + 1) * 100, ROWS))
        items = drawn.integers(0, 300, (2, ROWS))
        opened = {"ts": stamps, "item": items[0], "price": drawn.random(ROWS)}
        self.engine.push("O", pl.DataFrame(opened))
        closed = {"ts": stamps, "item": items[1], "buyer": items[1] % 7}
        self.engine.push("C", pl.DataFrame(closed))
        assert self.engine.tick() is not None

    @contextmanager
    def ticking(self, number: int) -> Iterator[None]:
        """A tick on another thread, which is over at the end."""
        failed: list[BaseException] = []

        def run() -> None:
            try:
                self.tick(number)
            except BaseException as error:
                failed.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        yield
        thread.join(300)
        assert not thread.is_alive()
        assert not failed, failed

    @property
    def said(self) -> list[tuple[Any, ...]]:
        return [(q, *c) for q, of in sorted(self.outlet.results.items()) for c in of]
