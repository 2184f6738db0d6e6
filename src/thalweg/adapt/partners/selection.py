"""What a node gives to a partner that asks (COSMOS 6.2.5): which fragments, in which order.

Three strategies: flow-aware is the source's; intermediate and elementary are its rivals. All take
the next fragment of their order that fits into what is left of the request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

HEAVIEST = 0.75  # of the gap between two nodes: what moves over it closes a half of it at least


@dataclass(frozen=True, slots=True)
class Candidate:
    """A fragment that may go, as the giving node sees it."""

    name: str
    load: float  # ρ, a share of the node
    state_bytes: float
    home: str  # its native node
    neighbours_at: tuple[str, ...]  # where its upstream and downstream fragments run

    @property
    def density(self) -> float:
        """Load that moves for each byte that travels."""
        return self.load / max(self.state_bytes, 1.0)


Order = Callable[[Candidate, str, str], tuple[int, int]]  # fragment, giver, receiver -> class


def flow_aware(fragment: Candidate, giver: str, receiver: str) -> tuple[int, int]:
    """Three classes by whose it is, times four by where its neighbours are."""
    whose = 2 if fragment.home == giver else 0 if fragment.home == receiver else 1
    there, here = receiver in fragment.neighbours_at, giver in fragment.neighbours_at
    flow = {(True, False): 0, (True, True): 1, (False, False): 2, (False, True): 3}[there, here]
    return whose, flow


def intermediate(fragment: Candidate, giver: str, receiver: str) -> tuple[int, int]:
    """Foreign before native."""
    return int(fragment.home == giver), 0


def elementary(fragment: Candidate, giver: str, receiver: str) -> tuple[int, int]:
    """By density alone."""
    return 0, 0


ORDERS: dict[str, Order] = {
    "flow-aware": flow_aware,
    "intermediate": intermediate,
    "elementary": elementary,
}
WHOSE = ("foreign, native to the receiver", "foreign", "native")
FLOW = ("neighbours there only", "neighbours at both", "neighbours at neither", "neighbours here")


def ordered(
    fragments: Iterable[Candidate], giver: str, receiver: str, order: Order
) -> list[Candidate]:
    return sorted(fragments, key=lambda f: (order(f, giver, receiver), -f.density, f.name))


def victims(
    fragments: Iterable[Candidate],
    giver: str,
    receiver: str,
    wanted: float,
    order: Order,
    *,
    exceed: bool = True,
) -> list[Candidate]:
    """As much of what is wanted as fits; what carries no load stays where it is.

    Where nothing fits, as all fragments are heavier than what is wanted, and `exceed`: the lightest
    goes if the two nodes (whose loads are `wanted` twice apart) still come nearer to each other.
    """
    chosen: list[Candidate] = []
    left = wanted
    loaded = [f for f in fragments if f.load > 0]
    for fragment in ordered(loaded, giver, receiver, order):
        if fragment.load <= left:
            chosen.append(fragment)
            left -= fragment.load
    if not chosen and loaded and exceed:
        lightest = min(loaded, key=lambda f: (f.load, f.name))
        if lightest.load < HEAVIEST * 2 * wanted:
            chosen.append(lightest)
    return chosen


def reason(fragment: Candidate, giver: str, receiver: str) -> str:
    """The class of a fragment in words, for those who ask why it moved."""
    whose, flow = flow_aware(fragment, giver, receiver)
    return f"{WHOSE[whose]}; {FLOW[flow]}"


def total(fragments: Sequence[Candidate]) -> float:
    return sum(f.load for f in fragments)
