"""A node's load without its noise, and which α does that (COSMOS 6.2.3).

ρ' = α·ρ + (1 − α)·ρ_c, where ρ_c is the load of the last window. α is a compromise: `least_alpha`
is the smallest that hides a swing of a given height and length; `windows_to_reflect` says how long
that α takes to follow a change that stays.
"""

from __future__ import annotations

from math import ceil, log


def filtered(alpha: float, before: float, collected: float) -> float:
    return alpha * before + (1 - alpha) * collected


def swing_seen(alpha: float, rise: int, stay: int, factor: float) -> float:
    """The estimate over ρ₀ after a rise to l·ρ₀ in m₁ windows that stays for m₂.

    The source's closed form; it divides by 1 − α, so α = 1 (nothing is ever seen) is its own case.
    """
    if not 0 <= alpha <= 1:
        raise ValueError(f"α = {alpha}: it is between 0 and 1")
    if rise < 1 or stay < 0:
        raise ValueError("a swing takes a window to rise at least, and stays for 0 or more")
    if alpha == 1:
        return 1.0
    slope = (factor - 1) / rise
    risen = 1 + slope * (rise + 1 + (alpha ** (rise + 1) - 1) / (1 - alpha))
    kept: float = alpha**stay
    return kept * risen + (1 - kept) * factor


def least_alpha(rise: int, stay: int, factor: float, kappa: float) -> float:
    """The smallest α that keeps such a swing within κ; 0 where it needs no filter.

    The estimate falls as α grows, so bisection finds it. For a fall (factor below 1) the bound
    is 1/κ.
    """
    if kappa <= 1:
        raise ValueError(f"κ = {kappa}: it is above 1")
    if factor <= 0:
        raise ValueError(f"a swing to {factor} of the load: above 0")

    def hides(alpha: float) -> bool:
        seen = swing_seen(alpha, rise, stay, factor)
        return seen <= kappa if factor >= 1 else seen >= 1 / kappa

    if hides(0.0):
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if hides(middle) else (middle, high)
    return high


def windows_to_reflect(alpha: float, factor: float, share: float) -> int:
    """How many windows until the estimate shows this share of a load that jumped to l·ρ₀ > ρ₀."""
    if factor <= 1 or not 0 < share < 1 or not 0 <= alpha < 1:
        raise ValueError("a jump up, a share of it within (0, 1), and α in [0, 1)")
    if share * factor <= 1:
        return 0  # the old estimate says as much
    if alpha == 0:
        return 1
    return ceil(log((share - 1) * factor / (1 - factor)) / log(alpha) - 1e-9)
