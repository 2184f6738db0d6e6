"""Which queries must leave their providers, as no bound allows them there.

The root sees the load of every provider. Where one has more than (1 + α) times its share, as few
queries as possible leave it (heavy ones first) for providers with room. Where nobody has room, a
query moves only if the greatest excess shrinks by it. Thereby moves come to an end, and then each
provider is within the bound, or over it by less than the weight of any of its queries. Where α
times the smallest provider's share is no less than the heaviest query, all are within the bound:
some provider always has no more than its share, and so has room.

The source asks its redistribution for balance at every level, and leaves it at that.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from thalweg.overlay.distribution.entries import Running
from thalweg.overlay.distribution.picture import ROUNDING, Subtree
from thalweg.overlay.protocol import Address


@dataclass(frozen=True, slots=True)
class Shift:
    running: Running
    to: Address | None  # None: wherever the tree finds room


def excess(whole: Subtree, allowed: float, resting: Container[str]) -> list[Shift]:
    """What must leave its provider; `resting` are those that were moved just now."""
    load, capability = dict(whole.load), whole.capability
    by_owner: dict[Address, list[Running]] = {}
    for running in whole.running.values():
        by_owner.setdefault(running.owner, []).append(running)
    takers = [a for a, c in capability.items() if c > 0]
    found: list[Shift] = []
    for owner in sorted(by_owner):
        limit = allowed * capability.get(owner, 0.0)
        leaving = capability.get(owner, 0.0) <= 0
        heavy_first = sorted(by_owner[owner], key=lambda r: (-r.weight, r.query.name))
        for running in heavy_first:
            over = load[owner] - limit
            if not leaving and over <= limit * ROUNDING:
                break
            others = [a for a in takers if a != owner]
            if running.query.name in resting or not others or (not leaving and not running.weight):
                continue
            best = max(others, key=lambda a: (allowed * capability[a] - load[a], a))
            room = allowed * capability[best] - load[best]
            fits = running.weight <= room
            if not fits and not leaving and running.weight - room >= over * (1 - ROUNDING):
                continue
            found.append(Shift(running, None if fits else best))
            load[owner] -= running.weight
            load[best] += running.weight
    return found
