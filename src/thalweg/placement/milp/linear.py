"""A mixed integer linear programme, as lists: what models write and solvers read."""

from __future__ import annotations

from dataclasses import dataclass, field

Terms = list[tuple[int, float]]  # (variable, factor)


@dataclass(slots=True)
class Model:
    """Binary variables, but for `busiest` and counts; rows are lower ≤ Σ terms ≤ upper."""

    costs: list[float] = field(default_factory=list)
    most: dict[int, int] = field(default_factory=dict)  # of a count: its largest value
    rows: list[tuple[float, Terms, float]] = field(default_factory=list)
    runs: dict[tuple[int, int], int] = field(default_factory=dict)  # z[host, operator]
    sends: dict[tuple[int, int, int, int], int] = field(default_factory=dict)  # x[h, m, s, hop]
    serves: dict[tuple[int, int], int] = field(default_factory=dict)  # d[host, demand]
    busiest: int | None = None  # O₄, continuous

    def binary(self, cost: float) -> int:
        self.costs.append(cost)
        return len(self.costs) - 1

    def count(self, most: int, cost: float = 0.0) -> int:
        """A whole number from 0 on."""
        variable = self.binary(cost)
        self.most[variable] = most
        return variable

    def row(self, lower: float, terms: Terms, upper: float) -> None:
        self.rows.append((lower, terms, upper))


INFINITY = float("inf")
