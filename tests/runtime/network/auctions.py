"""Two streams at two nodes, queries over both whose operators run elsewhere, and what they say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from tests.runtime.network.processes import Network
from tests.runtime.waiting import eventually

from thalweg.cql import compile_script
from thalweg.engine import reference
from thalweg.engine.arrivals import Arrival
from thalweg.plan.nodes import Join, Node, ToStream

JOINED = "FROM Bids [Range 40] B, Sold [Range 10] S WHERE B.item = S.item"
QUERIES: Mapping[str, tuple[str, type[Node]]] = {  # and the operator that another node computes
    "counted": (f"SELECT B.item, COUNT(*) AS n, MAX(price) AS top {JOINED} GROUP BY B.item", Join),
    "joined": (f"SELECT B.item, B.price, S.buyer {JOINED}", Join),
    "streamed": (f"SELECT ISTREAM B.item, B.price, S.buyer {JOINED}", ToStream),
}
LOSSY = "SELECT B.item, S.buyer FROM Bids [Rows 5] B, Sold [Range 10] S WHERE B.item = S.item"


@dataclass
class Auctions:
    """Bids at `bids`, sales at `sold`, queries at `proxy`; all names end with a word of their own,
    so that many can go on in one network."""

    network: Network
    word: str
    bids: str = "n1"
    sold: str = "n2"
    proxy: str = "n3"
    by: tuple[str, ...] = ()  # nodes that are asked first to pass rows on
    pushed: int = 1
    tried: dict[str, list[int]] = field(default_factory=dict)  # where batches end

    def __post_init__(self) -> None:
        self.streams = self._named(
            "CREATE STREAM Bids (item BIGINT, price BIGINT) TIMESTAMP BY ts BIGINT; "
            "CREATE STREAM Sold (item BIGINT, buyer BIGINT) TIMESTAMP BY ts BIGINT"
        )
        bids, sold = self.streams.split("; ")
        self.network.cql(self.bids, bids)
        self.network.cql(self.sold, sold)

    def _named(self, text: str) -> str:
        return text.replace("Bids", f"Bids{self.word}").replace("Sold", f"Sold{self.word}")

    def place(self, at: str, *names: str) -> None:
        for name in names or QUERIES:
            text, kind = QUERIES[name]
            self.place_text(name, text, {kind: at})

    def place_text(self, name: str, text: str, at: Mapping[type, str]) -> None:
        made = f"CREATE QUERY {name}{self.word} AS {self._named(text)}"
        self.network.place(self.proxy, self.streams, made, at)

    def rows(self, stream: str, low: int, high: int) -> list[dict[str, Any]]:
        other, step = ("price", 3) if stream == "Bids" else ("buyer", 4)
        return [{"ts": t, "item": t % step, other: t * 7 % 11} for t in range(low, high)]

    def push(self, upto: int) -> None:
        """Again and again, until it is there. What was tried in vain may have come after all, and
        is tried again as it was: a batch id counts once."""
        for stream, home in (("Bids", self.bids), ("Sold", self.sold)):
            ends = self.tried.setdefault(stream, [1])
            if ends[-1] < upto:
                ends.append(upto)
            for low, high in pairwise(ends):
                given = self.rows(stream, low, high)
                name, nodes = f"{stream}{self.word}", [*self.by, home]
                self.network.push(nodes, name, given, f"{stream}{low}")
        self.pushed = upto

    def final(self, name: str) -> int:
        return self.network.final(f"{name}{self.word}", self.proxy)

    def reaches(self, instant: int, *names: str, within_s: float = 180.0) -> None:
        for name in names or QUERIES:
            eventually(lambda n=name: self.final(n) >= instant, within_s)  # type: ignore[misc]

    def said(self, name: str) -> list[tuple[Any, ...]]:
        return self.network.said(f"{name}{self.word}", self.proxy)

    def expected(self, text: str) -> list[tuple[Any, ...]]:
        """By the reference, of what is final."""
        script = compile_script(f"{self.streams}; CREATE QUERY q AS {self._named(text)}")
        inputs = {}
        for stream in ("Bids", "Sold"):
            given = (list(r.values()) for r in self.rows(stream, 1, self.pushed))
            found = [Arrival(0, ts, i, tuple(values)) for i, (ts, *values) in enumerate(given)]
            inputs[f"{stream}{self.word}"] = found
        changes = reference.evaluate(script.queries[0].plan, inputs)
        return [(c.ts, c.op, c.row) for c in changes if c.ts < self.pushed - 1]

    def check(self, *names: str) -> None:
        """All that could be said has been said, once, and nothing else."""
        for name in names or QUERIES:
            self.reaches(self.pushed - 1, name)
            assert self.said(name) == self.expected(QUERIES[name][0]), name
