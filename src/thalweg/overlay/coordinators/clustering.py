"""Medians and splits of a cluster: pure functions of measured distances.

Source: COSMOS (seed 000) 3.3.3. The median is the member with the least total distance to all
others. A cluster that is too large is cut in two, each part of at least ⌊3k/2⌋, so that the larger
of the two radii is least.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from thalweg.overlay.protocol import Address

Distance = Callable[[Address, Address], int]

_MOST_POLES = 16


class Half(NamedTuple):
    centre: Address
    members: tuple[Address, ...]


def total(member: Address, members: Sequence[Address], distance: Distance) -> int:
    return sum(distance(member, other) for other in members if other != member)


def ranked(members: Sequence[Address], distance: Distance) -> list[Address]:
    """From the median outwards; ties by address."""
    return sorted(members, key=lambda m: (total(m, members, distance), m))


def split(members: Sequence[Address], least: int, distance: Distance) -> tuple[Half, Half]:
    """Two parts of at least `least` members each with small radii; centres are their medians.

    Every pair of members is tried as the poles; between two poles the members are ordered by how
    much nearer they are to the one than to the other, and cut where the larger radius is least.
    That is O(m³ log m) for the dozen or so members of a cluster. A crowd that has joined at once
    is cut between poles from an even sample of it, in O(m log m).
    """
    if len(members) < 2 * least:
        raise ValueError(f"{len(members)} members can't be cut in two parts of {least} or more")
    ordered = sorted(members)
    poles = ordered[:: -(-len(ordered) // _MOST_POLES)]
    best: tuple[int, int, Address, Address, int] | None = None
    for i, a in enumerate(poles):
        for b in poles[i + 1 :]:
            line = _line(ordered, a, b, distance)
            radii_a = _radii(line, a, distance)
            radii_b = _radii(line[::-1], b, distance)[::-1]
            for cut in range(least, len(line) - least + 1):
                larger, smaller = sorted((radii_a[cut - 1], radii_b[cut]), reverse=True)
                found = (larger, smaller, a, b, cut)
                if best is None or found < best:
                    best = found
    assert best is not None
    _, _, a, b, cut = best
    line = _line(ordered, a, b, distance)
    first, second = line[:cut], line[cut:]
    return tuple(Half(ranked(half, distance)[0], tuple(sorted(half))) for half in (first, second))  # type: ignore[return-value]


def _line(members: Sequence[Address], a: Address, b: Address, distance: Distance) -> list[Address]:
    def leaning(m: Address) -> tuple[int, Address]:
        return (0 if m == a else distance(m, a)) - (0 if m == b else distance(m, b)), m

    return sorted(members, key=leaning)


def _radii(line: Sequence[Address], centre: Address, distance: Distance) -> list[int]:
    """The radius of each beginning of the line."""
    found, radius = [], 0
    for m in line:
        radius = max(radius, 0 if m == centre else distance(m, centre))
        found.append(radius)
    return found
