"""DHTJoin's workload (5, table 5.1): relations, Zipf values, and queries of type 1 and 2."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

from thalweg.overlay.generator import Generator
from thalweg.overlay.p2p.planning import plan_joins
from thalweg.overlay.p2p.query import Between, JoinQuery, Leaf
from thalweg.overlay.p2p.tuples import Value


class Zipf:
    """Ranks 0 to count − 1, the k-th with a share of 1/(k + 1)^s; s = 0 is uniform."""

    def __init__(self, count: int, s: float) -> None:
        if count < 1 or s < 0:
            raise ValueError("a Zipf distribution has one rank or more, and s is not negative")
        self._sums = list(accumulate(1 / (k + 1) ** s for k in range(count)))

    def draw(self, generator: Generator) -> int:
        return bisect_left(self._sums, generator.unit() * self._sums[-1])


@dataclass(frozen=True, slots=True)
class Arriving:
    at_us: int
    stream: str
    values: tuple[Value, ...]


def stream_name(number: int) -> str:
    return f"S{number}"


def arrivals(
    generator: Generator,
    rate_per_s: float,
    duration_s: float,
    streams: int,
    attributes: int,
    values: Zipf,
) -> Iterator[Arriving]:
    """At a constant rate; each of a relation drawn at random, with all its attributes."""
    for i in range(int(rate_per_s * duration_s)):
        row = tuple([values.draw(generator) for _ in range(attributes)])
        yield Arriving(int((i + 1) * 1e6 / rate_per_s), stream_name(generator.below(streams)), row)


def query(
    generator: Generator,
    name: str,
    asker: str,
    joins: int,
    *,
    type_2: bool,
    streams: int,
    attributes: int,
    window: int,
    eager: bool,
) -> JoinQuery:
    """Over `joins` + 1 relations: all by one attribute (type 1), or a chain over several."""
    chosen = generator.sample([stream_name(i) for i in range(streams)], joins + 1)
    leaves = tuple([Leaf(s, window) for s in chosen])
    column = generator.below(attributes)
    comparisons = []
    for i in range(joins):
        if type_2 and i:
            column = (column + 1 + generator.below(attributes - 1)) % attributes
        comparisons.append(Between(i, column, "=", i + 1, column))
    steps, rest = plan_joins(leaves, comparisons, {})
    outputs = tuple([(i, 0) for i in range(joins + 1)])
    return JoinQuery(name, asker, leaves, steps, outputs, rest, eager)
