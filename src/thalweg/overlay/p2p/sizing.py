"""How many nodes a join between peers needs, and what completeness so many give.

Source: DHTJoin 4.5, equations 4.7 to 4.12, in the corrected form: (4.11) multiplies shares of the
windows that there is room for, and a share is at most 1. Where memory is short for every stream the
two are the same; else (4.11) would give a completeness above 1 for one stream and make up for
another's loss with it.

    C = Π min(1, n·m(Sᵢ) / (Wᵢ·λᵢ))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, prod


@dataclass(frozen=True, slots=True)
class Need:
    """One window of a query: tuples that it holds, and the room that each node has for them."""

    stream: str
    rate_per_s: float
    window_s: float
    memory: int

    def __post_init__(self) -> None:
        if self.rate_per_s <= 0:
            raise ValueError(f"the rate of {self.stream} is {self.rate_per_s}: it is above 0")
        if self.window_s <= 0:
            raise ValueError(f"the window of {self.stream} is {self.window_s} s: it is above 0")
        if self.memory < 1:
            raise ValueError(
                f"a node has room for {self.memory} tuples of {self.stream}: 1 or more"
            )

    @property
    def tuples(self) -> float:
        return self.rate_per_s * self.window_s


def completeness(needs: Sequence[Need], nodes: int) -> float:
    """The share of all results that `nodes` nodes give."""
    if nodes < 1:
        raise ValueError(f"{nodes} nodes: there is at least one")
    return prod(min(1.0, nodes * need.memory / need.tuples) for need in needs)


def nodes_for(needs: Sequence[Need], wanted: float) -> int:
    """The fewest nodes that give this completeness."""
    if not 0 < wanted <= 1:
        raise ValueError(f"a completeness of {wanted}: it is above 0, and 1 at most")
    # Completeness grows with the nodes, and is 1 when the largest window has room.
    low, high = 1, max(1, *[ceil(need.tuples / need.memory) for need in needs])
    while low < high:
        middle = (low + high) // 2
        if completeness(needs, middle) >= wanted - 1e-12:
            high = middle
        else:
            low = middle + 1
    return low


def curve(needs: Sequence[Need], points: int = 32) -> list[tuple[int, float]]:
    """Completeness by the number of nodes, up to where it is 1."""
    enough = nodes_for(needs, 1.0)
    steps = sorted({max(1, round(enough * i / points)) for i in range(1, points + 1)})
    return [(n, completeness(needs, n)) for n in steps]
