"""Standing queries over the auctions: a few shapes with drawn constants, and shapes of their own.

Each can be written in CQL and for Flink; the conditions are the same text in both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bench.auctions import PRICES, SELLERS

_COLUMNS = ("C.buyerID", "O.sellerID", "O.itemID")
_OPERATORS = "+-*"


@dataclass(frozen=True, slots=True)
class Standing:
    """A filter of O, or with a window O's tuples of the last seconds, joined as items close."""

    name: str
    window_s: int | None
    conditions: tuple[str, ...]

    @property
    def columns(self) -> dict[str, str]:
        """Names and SQL types of the result."""
        columns = {"itemID": "BIGINT", "price": "DOUBLE"}
        return columns if self.window_s is None else {**columns, "buyerID": "BIGINT"}

    @property
    def cql(self) -> str:
        conditions = " AND ".join(self.conditions)
        if self.window_s is None:
            return f"SELECT ISTREAM O.itemID, O.price FROM O [Now] WHERE {conditions}"
        return (
            "SELECT ISTREAM O.itemID, O.price, C.buyerID "
            f"FROM O [Range {self.window_s} Second], C [Now] "
            f"WHERE O.itemID = C.itemID AND {conditions}"
        )

    @property
    def flink(self) -> str:
        """An interval join: Flink's form of a window that the closing of an item looks back on."""
        conditions = " AND ".join(self.conditions)
        if self.window_s is None:
            return f"SELECT O.itemID, O.price FROM O WHERE {conditions}"
        return (
            "SELECT O.itemID, O.price, C.buyerID FROM O, C WHERE O.itemID = C.itemID "
            f"AND O.rt BETWEEN C.rt - INTERVAL '{self.window_s}' SECOND AND C.rt "
            f"AND {conditions}"
        )


def script(queries: Sequence[Standing]) -> str:
    return "".join(f"CREATE QUERY {q.name} AS {q.cql};\n" for q in queries)


def draw(
    count: int, overlap: float, share: float, windows_s: Sequence[int], seed: int
) -> list[Standing]:
    """`overlap` of the queries are of three shapes, the others of a shape of their own each.

    `share` is the part of all prices that a query wants.
    """
    random = np.random.default_rng(seed)
    kinds = (_join, _range, _equality)
    made: list[Standing] = []
    common = 0
    for number in range(count):
        window = windows_s[number % len(windows_s)]
        if int((number + 1) * overlap) > common:
            made.append(kinds[common % len(kinds)](f"q{number}", window, share, random))
            common += 1
        else:
            made.append(_distinct(f"q{number}", number - common, window, share, random))
    return made


def distinct_joins(
    count: int, shapes: int, share: float, windows_s: Sequence[int], seed: int
) -> list[Standing]:
    """Queries of so many different joins, in turn."""
    random = np.random.default_rng(seed)
    return [
        _distinct(f"q{i}", i % shapes, windows_s[i % len(windows_s)], share, random)
        for i in range(count)
    ]


def equalities(count: int, seed: int) -> list[Standing]:
    random = np.random.default_rng(seed)
    return [_equality(f"q{i}", 0, 0.0, random) for i in range(count)]


def _prices(share: float, random: np.random.Generator) -> tuple[str, str]:
    width = share * PRICES
    low = random.uniform(0, PRICES - width)
    return f"O.price >= {low:.6f}", f"O.price < {low + width:.6f}"


def _join(name: str, window_s: int, share: float, random: np.random.Generator) -> Standing:
    return Standing(name, window_s, _prices(share, random))


def _range(name: str, window_s: int, share: float, random: np.random.Generator) -> Standing:
    return Standing(name, None, _prices(share, random))


def _equality(name: str, window_s: int, share: float, random: np.random.Generator) -> Standing:
    return Standing(name, None, (f"O.sellerID = {random.integers(SELLERS)}",))


def _distinct(
    name: str, shape: int, window_s: int, share: float, random: np.random.Generator
) -> Standing:
    """A condition without constants is part of a query's shape, not of what varies in it."""
    term = "O.price"
    for digit in _digits(shape):
        term = f"({term} {_OPERATORS[digit // 3]} {_COLUMNS[digit % 3]})"
    return Standing(name, window_s, (f"{term} >= O.sellerID", *_prices(share, random)))


def _digits(number: int) -> Iterator[int]:
    """In base 9, three at least: other numbers are other sequences."""
    for place in range(3):
        yield number // 9**place % 9
    rest = number // 9**3
    while rest:
        yield rest % 9
        rest //= 9
