"""Where a query's sources and its proxy stand (SAND, section 6.1).

Two means describe a configuration, both as fractions of the network's diameter: APD, the distance
between proxy and sources, and ASD, the distance between sources. SAND fixes them for `uniform`
(both 0.4), and their ratio for the others: `star` (APD about half of ASD: the proxy amid the
sources) and `cluster` (APD about twice ASD: sources close together, far from the proxy). The larger
of the two is 0.4 here as well.

By the triangle inequality ASD ≤ 2·APD, with equality only where the proxy lies on every path
between sources. So half is a limit that `star` comes near to, and a tolerance is allowed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from thalweg.sim.networks.topology import Ints


class NoSuchPlaces(ValueError):
    """No places with these distances were found."""


@dataclass(frozen=True, slots=True)
class Configuration:
    name: str
    apd: float
    asd: float

    def __post_init__(self) -> None:
        for field, value in (("APD", self.apd), ("ASD", self.asd)):
            if not 0 < value <= 1:
                raise ValueError(f"{self.name}: {field} is a fraction of the diameter, not {value}")
        if self.asd > 2 * self.apd:
            raise ValueError(
                f"{self.name}: an ASD of {self.asd} is impossible with an APD of {self.apd}: "
                "two sources are at most as far apart as the way over the proxy"
            )


STAR = Configuration("star", apd=0.2, asd=0.4)
UNIFORM = Configuration("uniform", apd=0.4, asd=0.4)
CLUSTER = Configuration("cluster", apd=0.4, asd=0.2)
CONFIGURATIONS = {c.name: c for c in (STAR, UNIFORM, CLUSTER)}


@dataclass(frozen=True, slots=True)
class Places:
    proxy: int
    sources: tuple[int, ...]  # all different, none of them the proxy
    apd: float
    asd: float


def place(
    latency_us: Ints,
    candidates: Ints,
    wanted: Configuration,
    *,
    sources: int,
    seed: int,
    tolerance: float = 0.15,
    restarts: int = 20,
) -> Places:
    """Random places whose APD and ASD are each within `tolerance` (relative) of what is wanted.

    Random places first, then single exchanges as long as they help; from there anew if the goal is
    not reached. A tight goal shapes the places, a loose one leaves them to chance.
    """
    if sources < 2:
        raise ValueError("an ASD needs two sources or more")
    if len(candidates) <= sources:
        raise ValueError(f"{sources} sources and a proxy don't fit on {len(candidates)} nodes")
    rng = np.random.default_rng([seed, sources])
    distances = latency_us[np.ix_(candidates, candidates)] / float(latency_us.max())
    closest: tuple[float, float, float] = (np.inf, 0, 0)
    for _ in range(restarts):
        chosen = rng.permutation(len(candidates))[: sources + 1]
        error, apd, asd = _improve(distances, chosen, wanted, rng, tolerance)
        if error <= tolerance:
            proxy, *others = (int(candidates[c]) for c in chosen)
            return Places(proxy, tuple(others), apd, asd)
        closest = min(closest, (error, apd, asd))
    raise NoSuchPlaces(
        f"{wanted.name}: no {sources} sources and proxy with APD {wanted.apd} and ASD {wanted.asd} "
        f"of the diameter (± {tolerance:.0%}); the closest had {closest[1]:.3f} and "
        f"{closest[2]:.3f}: allow a larger tolerance, or ask for fewer sources"
    )


def _improve(
    distances: np.ndarray, chosen: np.ndarray, wanted: Configuration, rng: Generator, enough: float
) -> tuple[float, float, float]:
    """Exchange one place at a time, in place; the best of a handful of candidates each time."""
    n, failed = len(chosen), 0
    error, apd, asd = _error(distances, chosen, wanted)
    while error > enough and failed < 4 * n:
        spot = int(rng.integers(n))
        best = (error, apd, asd, chosen[spot])
        before = chosen[spot]
        for other in rng.integers(len(distances), size=16):
            if other not in chosen:
                chosen[spot] = other
                best = min(best, (*_error(distances, chosen, wanted), other))
                chosen[spot] = before
        failed = 0 if best[0] < error else failed + 1
        error, apd, asd, chosen[spot] = best
    return error, apd, asd


def _error(
    distances: np.ndarray, chosen: np.ndarray, wanted: Configuration
) -> tuple[float, float, float]:
    """The larger relative miss of the two means, and both means; the proxy comes first."""
    near = distances[np.ix_(chosen, chosen)]
    m = len(chosen) - 1
    apd = float(near[0, 1:].mean())
    asd = float(near[1:, 1:].sum()) / (m * (m - 1))
    miss = max(abs(apd / wanted.apd - 1), abs(asd / wanted.asd - 1))
    return miss, apd, asd
