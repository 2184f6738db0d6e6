"""Arithmetic on the ring of identifiers, and how a query is spread along it.

Source: DHTJoin (seed 003) 4.3.1, Algorithms 8 and 9, after El-Ansary et al. (2003). Fingers are
n + 2^(i−1); equal fingers count once. Algorithm 8 may send to the node itself (a finger that wraps
round the whole ring), and Algorithm 9 drops what lies between the last finger inside the limit and
the first outside it when the last one is a duplicate; over *distinct* fingers in ring order both
are one loop.
"""

from __future__ import annotations

from collections.abc import Sequence

from thalweg.overlay.protocol import Address
from thalweg.overlay.routing import IDS, Part, Scope


def distance(start: int, end: int) -> int:
    """Clockwise from start to end."""
    return (end - start) % IDS


def distance_to_limit(own: int, limit: Scope | None) -> int:
    """How far the scope reaches; a limit at oneself is once round."""
    return (IDS if limit is None else distance(own, limit)) or IDS


def ring_parts(own: int, fingers: Sequence[tuple[int, Address]], limit: Scope | None) -> list[Part]:
    """]own, limit[ cut at the fingers inside it; each finger gets what lies up to the next."""
    reach = distance_to_limit(own, limit)
    inside = sorted(
        {(distance(own, finger), finger, address) for finger, address in fingers if finger != own}
    )
    inside = [entry for entry in inside if entry[0] < reach]
    limits = [*(finger for _, finger, _ in inside[1:]), own if limit is None else limit]
    return [(entry[2], limits[i]) for i, entry in enumerate(inside)]
