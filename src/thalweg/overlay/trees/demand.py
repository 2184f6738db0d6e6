"""What nodes want of a stream together, and how often rows are due for it.

In the simulator a demand is a set of tolerance classes, and rows are labelled with those for which
they are due: how often rows are due for any of several is counted. A live node knows how many rows
it gets, and no labels: there a demand is a rate, and who wants more gets all that others get, as in
the source (its r^m is the highest rate of a subtree).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

Labels = dict[tuple[int, ...], float]  # rows a second, by the classes that they are due for
PER_S = 1000  # a nested demand is a number of rows in so many seconds


@dataclass(frozen=True, slots=True)
class Columns:
    """Demands as a view wants them."""

    of: Callable[[Sequence[tuple[int, ...]]], np.ndarray]
    join: Callable[[np.ndarray, np.ndarray], np.ndarray]
    rates: Callable[[np.ndarray], np.ndarray]


class Demand(Protocol):
    def union(self, demands: Iterable[tuple[int, ...]]) -> tuple[int, ...]: ...

    def rate(self, labels: Labels, demand: tuple[int, ...]) -> float:
        """Rows a second that are due for it."""
        ...

    def columns(self, labels: Labels) -> Columns: ...


class Labelled:
    """Sets of classes; as columns, the bits of an integer."""

    def union(self, demands: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
        return tuple(sorted({c for demand in demands for c in demand}))

    def rate(self, labels: Labels, demand: tuple[int, ...]) -> float:
        wanted = set(demand)
        return sum(rate for label, rate in labels.items() if not wanted.isdisjoint(label))

    def columns(self, labels: Labels) -> Columns:
        by_mask = [(_mask(label), rate) for label, rate in labels.items()]

        def of(demands: Sequence[tuple[int, ...]]) -> np.ndarray:
            found = np.zeros((len(demands), 1), object)
            found[:, 0] = [_mask(d) for d in demands]
            return found

        def rates(demands: np.ndarray) -> np.ndarray:
            known: dict[int, float] = {}
            for mask in demands.flat:
                if mask not in known:
                    known[mask] = sum(rate for label, rate in by_mask if label & mask)
            return np.array([known[m] for m in demands.flat], float).reshape(demands.shape)

        return Columns(of, np.bitwise_or, rates)


class Nested:
    """Rates; the highest stands for all."""

    def union(self, demands: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
        found = [c for demand in demands for c in demand]
        return (max(found),) if found else ()

    def rate(self, labels: Labels, demand: tuple[int, ...]) -> float:
        return max(demand, default=0) / PER_S

    def columns(self, labels: Labels) -> Columns:
        def of(demands: Sequence[tuple[int, ...]]) -> np.ndarray:
            return np.array([[self.rate(labels, d)] for d in demands], float)

        return Columns(of, np.maximum, lambda rates: rates)


def _mask(classes: tuple[int, ...]) -> int:
    return sum(1 << c for c in classes)
