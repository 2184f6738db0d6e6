"""How many nodes a join between peers needs, and what completeness so many give.

Source: DHTJoin 4.5, equations 4.7 to 4.12, in the corrected form: (4.11) multiplies shares of the
windows that there is room for, and a share is at most 1. Where memory is short for every stream the
two are the same; else (4.11) would give a completeness above 1 for one stream and make up for
another's loss with it.

    C = Π min(1, n·m(Sᵢ) / (Wᵢ·λᵢ))

That is for windows that are always equally full. Tuples come by chance, so that a node's part of a
window holds N of them, now more and now fewer, and what is above m(Sᵢ) is lost while what is below
gains nothing. `by_chance` is the mean, with N drawn from a Poisson distribution of mean Wᵢ·λᵢ / n:

    C = Π E[min(N, m(Sᵢ))] / E[N]

They differ where room is just enough: by 0.4/√m for each window at m(Sᵢ) = E[N].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, erf, exp, lgamma, log, pi, prod, sqrt

_EXACT_BELOW = 500  # tuples: beyond, a Poisson distribution is as good as normal


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


def by_chance(needs: Sequence[Need], nodes: int) -> float:
    """The same for tuples that come at random: all of it needs more room than the mean."""
    if nodes < 1:
        raise ValueError(f"{nodes} nodes: there is at least one")
    return prod(_kept(need.tuples / nodes, need.memory) for need in needs)


def results_by_chance(needs: Sequence[Need], nodes: int) -> float:
    """Of results rather than of what is stored: the newest tuple of each probes when it comes,
    whether or not there is room for it."""
    kept = [_kept(need.tuples / nodes, need.memory) for need in needs]
    # It is of stream i for λᵢ·Π λⱼWⱼ (j ≠ i) of the results a second: in proportion to 1/Wᵢ.
    weights = [1 / need.window_s for need in needs]
    of_others = [prod(k for j, k in enumerate(kept) if j != i) for i in range(len(kept))]
    return sum(w * k for w, k in zip(weights, of_others, strict=True)) / sum(weights)


def _kept(mean: float, room: int) -> float:
    """E[min(N, room)] / mean of a Poisson distribution."""
    deviation = sqrt(mean)
    if room > mean + 12 * deviation + 12:
        return 1.0
    if mean > _EXACT_BELOW:
        z = (room - mean) / deviation
        above = exp(-z * z / 2) / sqrt(2 * pi) - z * (1 - erf(z / sqrt(2))) / 2
        return 1 - deviation * above / mean
    free = sum((room - n) * exp(n * log(mean) - mean - lgamma(n + 1)) for n in range(room))
    return (room - free) / mean


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
