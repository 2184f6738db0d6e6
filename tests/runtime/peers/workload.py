"""Streams and queries of peers with what the reference evaluator says of them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any

from thalweg.cql import compile_script
from thalweg.engine.arrivals import Arrival
from thalweg.engine.reference import evaluate

STREAMS = """
CREATE STREAM X (a BIGINT, b BIGINT) TIMESTAMP BY ts LATENESS 3;
CREATE STREAM Y (a BIGINT, c VARCHAR, b BIGINT) TIMESTAMP BY ts LATENESS 3;
CREATE STREAM Z (b BIGINT, d DOUBLE) TIMESTAMP BY ts LATENESS 3;
"""
QUERIES = {
    "pair": "SELECT X.a, X.b, Y.c FROM X [Range 12], Y [Range 8] WHERE X.a = Y.a",
    "three": "SELECT X.a, Z.d FROM X [Range 9], Y [Now], Z [Range 15] "
    "WHERE X.b = Y.b AND Y.b = Z.b AND Z.d > 1",
    "chain": "SELECT X.a, Y.c, Z.d FROM X [Range 10], Y [Range 10], Z [Range 6] "
    "WHERE X.a = Y.a AND Y.b = Z.b AND X.b <= Z.b",
    "counted": "SELECT Y.c, COUNT(*) AS n, SUM(X.b) AS s FROM X [Range 10], Y [Range 10] "
    "WHERE X.a = Y.a GROUP BY Y.c",
    "news": "ISTREAM (SELECT DISTINCT X.a FROM X [Range 5], Y [Range 5] WHERE X.a = Y.a)",
}
Parts = tuple[tuple[str, str], ...]  # nodes and streams
COLUMNS = {"X": ("a", "b"), "Y": ("a", "c", "b"), "Z": ("b", "d")}


class Rows:
    """Rows of a stream for one source: in event time, up to 3 instants out of order."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.pushed: dict[tuple[str, str], list[tuple[int, tuple[Any, ...]]]] = {}

    def draw(self, node: str, stream: str, low: int, high: int, count: int) -> list[dict[str, Any]]:
        rng = self._random
        stamps = sorted(rng.randrange(low, high) for _ in range(count))
        found = []
        newest = -1
        for ts in stamps:
            newest = max(newest, ts)
            late_by = rng.choice((0, 0, 0, 1, 2))
            at = max(ts - late_by, low, newest - 3)
            row = {
                "a": rng.choice([None, *range(6)]) if rng.random() < 0.1 else rng.randrange(6),
                "b": rng.randrange(4),
                "c": f"c{rng.randrange(3)}",
                "d": rng.randrange(8) / 2,
            }
            kept = {k: row[k] for k in COLUMNS[stream]}
            found.append({"ts": at, **kept})
            self.pushed.setdefault((node, stream), []).append((at, tuple(kept.values())))
        return found

    def expected(self, query: str, upto: int, streams: str = STREAMS) -> list[tuple[Any, ...]]:
        (found,) = compile_script(f"{streams}; CREATE QUERY it AS {query}").queries
        inputs: dict[str, list[Arrival]] = {s: [] for s in COLUMNS}
        for partition, ((_, stream), rows) in enumerate(sorted(self.pushed.items())):
            for position, (ts, values) in enumerate(rows):
                inputs[stream].append(Arrival(partition, ts, position, values))
        changes = evaluate(found.plan, inputs)
        return [(c.ts, c.op, tuple(c.row)) for c in changes if c.ts < upto]


def combinations(rows: Rows) -> Iterator[tuple[tuple[int, int], tuple[Any, ...], Parts]]:
    """Of the query `pair`: instants from and upto, its row, and whose tuples it is made of."""
    pushed = rows.pushed.items()
    for left, xs in ((k, v) for k, v in pushed if k[1] == "X"):
        for right, ys in ((k, v) for k, v in pushed if k[1] == "Y"):
            for (x_ts, x), (y_ts, y) in product(xs, ys):
                start, end = max(x_ts, y_ts), min(x_ts + 12, y_ts + 8) + 1
                if x[0] == y[0] is not None and start < end:
                    yield (start, end), (x[0], x[1], y[1]), (left, right)


def net_of(changes: Iterable[tuple[Any, ...]]) -> Counter[tuple[int, tuple[Any, ...]]]:
    """How often each row comes, less how often it goes, by instant."""
    found: Counter[tuple[int, tuple[Any, ...]]] = Counter()
    for ts, op, row in changes:
        found[ts, row] += 1 if op == "+" else -1
    return found
