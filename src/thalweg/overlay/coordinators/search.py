"""How a root finds the tree that it belongs into, and its place there (COSMOS 3.3.3, rule 1).

First the other root, through anybody; then down from it, at each level to the child that is
nearest, until the level is reached at which the searching node, with all that is below it, becomes
a member. The searcher pings the children itself: who else could measure its distances?
"""

from __future__ import annotations

from dataclasses import dataclass, field

from thalweg.overlay.coordinators.messages import Below
from thalweg.overlay.protocol import Address


@dataclass(slots=True)
class Search:
    asked: Address
    started_us: int
    seen: list[Address] = field(default_factory=list)  # asked for the root: no circles
    level: int = -1  # of the candidates
    candidates: dict[Address, int | None] = field(default_factory=dict)  # -> round trip

    def choose_among(self, answer: Below, own: Address) -> list[Address]:
        """The children to be pinged; the sender is nearest to itself and is pinged like all."""
        self.level = answer.level
        self.candidates = {m: None for m in answer.members if m != own}
        return list(self.candidates)

    def answered(self, address: Address, round_trip_us: int) -> bool:
        """Whether all have answered by now."""
        if address in self.candidates:
            self.candidates[address] = round_trip_us
        return bool(self.candidates) and None not in self.candidates.values()

    def nearest(self) -> Address | None:
        known = [(trip, address) for address, trip in self.candidates.items() if trip is not None]
        return min(known)[1] if known else None


def yields(own_height: int, own: Address, height: int, other: Address) -> bool:
    """Which of two roots joins the other's tree: the lower one; of equals, the later name."""
    return (own_height, other) < (height, own)
