"""Who asks whom for how much load (COSMOS 6.2.4, Algorithm 6.2).

Added to the printed algorithm, which looks at the asking side only: it leaves one node far above
the rest alone as long as no partner is far below. Here who is below the mean also asks where the
busiest is above κ times the mean. And a partner that had nothing to give is not asked again for a
while, and does not count in the mean: its load is of a kind that can't move, and who asks only the
busiest would never get further.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import sqrt


@dataclass(frozen=True, slots=True)
class Wish:
    partner: str
    load: float
    why: str  # "low": the printed rule; "high": the busiest stands out; "home": see `homing`


def wish(
    own: float,
    partners: Mapping[str, float],
    kappa: float,
    *,
    relieve: bool = False,
    dry: Collection[str] = (),
    least: float = 0.0,
) -> Wish | None:
    """What to ask for at the start of a round; None where the loads are near enough, or what there
    is to ask for is not worth a move (`least`)."""
    givers = sorted(p for p in partners if p not in dry)
    if not givers:
        return None
    mean = (own + sum(partners[g] for g in givers)) / (1 + len(givers))
    busiest = max(givers, key=lambda p: partners[p])
    amount = (partners[busiest] - own) / 2
    if amount <= least:
        return None
    if kappa * own < mean:
        return Wish(busiest, amount, "low")
    if relieve and own < mean and partners[busiest] > kappa * mean:
        return Wish(busiest, amount, "high")
    return None


def homing(
    own: float, partners: Mapping[str, float], abroad: Mapping[str, int], kappa: float
) -> Wish | None:
    """Ask for one's own fragments back, up to √κ times the mean: whoever runs the most of them.

    Beyond the source: where loads are near enough nobody asks, and what a perturbation drove away
    would stay away for good, with its traffic.
    """
    if not abroad or not partners:
        return None
    mean = (own + sum(partners.values())) / (1 + len(partners))
    room = sqrt(kappa) * mean - own
    if room <= 0:
        return None
    owner = max(sorted(abroad), key=lambda a: abroad[a])
    return Wish(owner, room, "home")


def spare(own: float, partners: Mapping[str, float], kappa: float) -> float:
    """What a node can let go home without becoming one that asks: it stays above ρ̄ / √κ."""
    mean = (own + sum(partners.values())) / (1 + len(partners))
    return max(0.0, own - mean / sqrt(kappa))
