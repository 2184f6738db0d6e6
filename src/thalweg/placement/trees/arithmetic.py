"""How demands are joined and counted, node by node: plain numbers for one object, rows for many.

The ledger looks at a few nodes for each change. There, numpy is ten times slower than Python for
one object, and the other way round for a hundred.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from thalweg.placement.trees.model import Cargo


class Arithmetic(Protocol):
    join: Callable[[Any, Any], Any]

    def rates(self, demand: Any) -> Any: ...

    def total(self, rates: Any) -> float: ...

    def wants(self, demand: Any) -> Any:
        """1 for each object that is wanted, 0 for others."""

    def checks(self, rates: Any, fan: Any) -> float:
        """A second: every row, for each child that wants its object."""

    def passed(self, rates: Any, fan: Any) -> float:
        """Rows a second that some child may want."""

    def same(self, one: Any, other: Any) -> bool: ...

    def rows(self, cargo: Cargo) -> list[Any]:
        """Each node's own demand."""


class OneObject:
    def __init__(self, cargo: Cargo) -> None:
        self.join: Callable[[Any, Any], Any] = max if cargo.union_rate is None else operator.or_
        self._table = None if cargo.union_rate is None else cargo.union_rate[0].tolist()

    def rates(self, demand: Any) -> Any:
        return demand if self._table is None else self._table[demand]

    def total(self, rates: Any) -> float:
        return rates  # type: ignore[no-any-return]

    def wants(self, demand: Any) -> Any:
        return 1 if demand else 0

    def checks(self, rates: Any, fan: Any) -> float:
        return rates * fan  # type: ignore[no-any-return]

    def passed(self, rates: Any, fan: Any) -> float:
        return rates if fan else 0.0

    def same(self, one: Any, other: Any) -> bool:
        return bool(one == other)

    def rows(self, cargo: Cargo) -> list[Any]:
        found: list[Any] = cargo.own[:, 0].tolist()
        return found


class ManyObjects:
    def __init__(self, cargo: Cargo) -> None:
        self.join: Callable[[Any, Any], Any] = (
            np.maximum if cargo.union_rate is None else np.bitwise_or
        )
        self._flat = None if cargo.union_rate is None else cargo.union_rate.ravel()
        width = 0 if cargo.union_rate is None else cargo.union_rate.shape[1]
        self._starts = np.arange(cargo.own.shape[1]) * width
        self._ones = np.ones(cargo.own.shape[1])

    def rates(self, demand: Any) -> Any:
        return demand if self._flat is None else self._flat.take(self._starts + demand)

    def total(self, rates: Any) -> float:
        return float(rates.dot(self._ones))

    def wants(self, demand: Any) -> Any:
        return np.sign(demand).astype(float)  # numbers of one kind are multiplied many times faster

    def checks(self, rates: Any, fan: Any) -> float:
        return float(rates.dot(fan))

    def passed(self, rates: Any, fan: Any) -> float:
        return float(rates.dot(np.minimum(fan, self._ones)))

    def same(self, one: Any, other: Any) -> bool:
        return bool(one.tobytes() == other.tobytes())

    def rows(self, cargo: Cargo) -> list[Any]:
        return list(cargo.own)


def arithmetic(cargo: Cargo) -> Arithmetic:
    return OneObject(cargo) if cargo.own.shape[1] == 1 else ManyObjects(cargo)
