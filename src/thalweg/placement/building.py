"""Problems made piece by piece: each distinct stream and operator is entered once.

Streams are equal when the same operators make them from the same inputs (SQPR, II-C). Here that is
a key of the caller's choosing: entering a key again gives the number that it has.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import inf
from typing import Protocol

from thalweg.placement.arrays import NONE, floats, ints, ragged
from thalweg.placement.deployment import Deployment
from thalweg.placement.problem import Hosts, Operators, Problem, Queries, Streams


@dataclass(slots=True)
class ProblemBuilder:
    hosts: Hosts
    _streams: list[tuple[str, float, int]] = field(default_factory=list)
    _stream_of: dict[Hashable, int] = field(default_factory=dict)
    _operators: list[tuple[str, tuple[int, ...], int, float, float, int]] = field(
        default_factory=list
    )
    _operator_of: dict[tuple[tuple[int, ...], int], int] = field(default_factory=dict)
    _queries: list[tuple[str, int, int, float]] = field(default_factory=list)

    def stream(self, key: Hashable, name: str, rate_bps: float, home: int = NONE) -> int:
        if key not in self._stream_of:
            self._stream_of[key] = len(self._streams)
            self._streams.append((name, rate_bps, home))
        return self._stream_of[key]

    def knows(self, key: Hashable) -> bool:
        return key in self._stream_of

    def rate_bps(self, stream: int) -> float:
        return self._streams[stream][1]

    def stream_name(self, stream: int) -> str:
        return self._streams[stream][0]

    def operator(
        self,
        name: str,
        inputs: Sequence[int],
        output: int,
        cpu: float,
        *,
        state_bytes: float = 0.0,
        pinned: int = NONE,
    ) -> int:
        key = (tuple(inputs), output)
        if key not in self._operator_of:
            self._operator_of[key] = len(self._operators)
            self._operators.append((name, tuple(inputs), output, cpu, state_bytes, pinned))
        return self._operator_of[key]

    def query(
        self, name: str, wanted: int, *, proxy: int = NONE, latency_bound_ms: float = inf
    ) -> int:
        self._queries.append((name, wanted, proxy, latency_bound_ms))
        return len(self._queries) - 1

    def build(self, running: Deployment | None = None) -> Problem:
        streams = tuple(zip(*self._streams, strict=True)) or ((), (), ())
        operators = tuple(zip(*self._operators, strict=True)) or ((),) * 6
        queries = tuple(zip(*self._queries, strict=True)) or ((),) * 4
        return Problem(
            self.hosts,
            Streams(streams[0], floats(streams[1]), ints(streams[2])),
            Operators(
                operators[0],
                ragged(operators[1]),
                ints(operators[2]),
                floats(operators[3]),
                floats(operators[4]),
                ints(operators[5]),
            ),
            Queries(queries[0], ints(queries[1]), ints(queries[2]), floats(queries[3])),
            running,
        )


class JoinModel(Protocol):
    """What a caller knows about the joins of some inputs; a part is a sorted tuple of positions."""

    def key(self, part: tuple[int, ...]) -> Hashable: ...
    def name(self, part: tuple[int, ...]) -> str: ...
    def rate_bps(self, part: tuple[int, ...]) -> float: ...
    def operator(self, output: str, left: str, right: str) -> str: ...
    def cpu(self, operator: str, input_bps: float) -> float: ...
    def joinable(self, left: tuple[int, ...], right: tuple[int, ...]) -> bool: ...


def add_join_orders(builder: ProblemBuilder, inputs: Sequence[int], model: JoinModel) -> int:
    """All abstract plans of a join: every sub-join a stream, every way to make it an operator.

    Gives the stream of the whole join. A sub-join whose halves may not be joined (a product, where
    the model refuses products) is left out, and so is everything that only it would lead to.
    """
    made: dict[tuple[int, ...], int] = {(i,): stream for i, stream in enumerate(inputs)}
    for size in range(2, len(inputs) + 1):
        for part in combinations(range(len(inputs)), size):
            for left, right in _splits(part):
                if left not in made or right not in made or not model.joinable(left, right):
                    continue
                output = builder.stream(model.key(part), model.name(part), model.rate_bps(part))
                made[part] = output
                sides = (made[left], made[right])
                named = (builder.stream_name(s) for s in sides)
                operator = model.operator(model.name(part), *named)
                read = sum(builder.rate_bps(s) for s in sides)
                builder.operator(operator, sides, output, model.cpu(operator, read))
    whole = tuple(range(len(inputs)))
    if whole not in made:
        raise ValueError("these inputs can't be joined without a product")
    return made[whole]


def _splits(part: tuple[int, ...]) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """All ways to cut a set in two; the first element is always on the left."""
    first, rest = part[0], part[1:]
    splits = []
    for size in range(len(rest)):
        for chosen in combinations(rest, size):
            right = tuple(i for i in rest if i not in chosen)
            splits.append(((first, *chosen), right))
    return splits
