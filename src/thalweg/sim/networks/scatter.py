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
    aim = _Aim(latency_us, candidates, wanted, float(latency_us.max()), tolerance)
    closest: tuple[float, float, float] = (np.inf, 0, 0)
    for _ in range(restarts):
        chosen = rng.permutation(len(candidates))[: sources + 1]
        miss, apd, asd = aim.improve(chosen, rng)
        if miss <= tolerance:
            proxy, *others = (int(candidates[c]) for c in chosen)
            return Places(proxy, tuple(others), apd, asd)
        closest = min(closest, (miss, apd, asd))
    raise NoSuchPlaces(
        f"{wanted.name}: no {sources} sources and proxy with APD {wanted.apd} and ASD {wanted.asd} "
        f"of the diameter (± {tolerance:.0%}); the closest had {closest[1]:.3f} and "
        f"{closest[2]:.3f}: allow a larger tolerance, or ask for fewer sources"
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Aim:
    """What is wanted of places, and how far places are from it. The proxy comes first."""

    latency_us: Ints  # there as back
    candidates: Ints
    wanted: Configuration
    diameter_us: float
    enough: float

    def improve(self, chosen: np.ndarray, rng: Generator) -> tuple[float, float, float]:
        """Exchange one place at a time, in place; the best of a handful of candidates each time.

        The miss, the APD and the ASD that are reached. Sums of distances follow the exchanges, so
        that one costs a row of distances and not a matrix.
        """
        n, failed = len(chosen), 0
        inside = self._between(chosen, chosen)
        to_proxy, apart = int(inside[0, 1:].sum()), int(inside[1:, 1:].sum())
        miss, apd, asd = self._miss(np.array([to_proxy]), np.array([apart]), n - 1)
        while miss[0] > self.enough and failed < 4 * n:
            spot = int(rng.integers(n))
            others = rng.integers(len(self.candidates), size=_TRIED)
            others = others[~np.isin(others, chosen)]
            here, there = self._between(chosen[[spot]], chosen)[0], self._between(others, chosen)
            if spot == 0:
                new_to, new_apart = there[:, 1:].sum(axis=1), np.full(len(others), apart)
            else:
                new_to = to_proxy - here[0] + there[:, 0]
                gained = there[:, 1:].sum(axis=1) - there[:, spot] - here[1:].sum()
                new_apart = apart + 2 * gained
            found = self._miss(new_to, new_apart, n - 1)
            best = int(np.argmin(found[0])) if len(others) else 0
            if not len(others) or found[0][best] >= miss[0]:
                failed += 1
                continue
            failed, chosen[spot] = 0, others[best]
            to_proxy, apart = int(new_to[best]), int(new_apart[best])
            miss, apd, asd = (f[[best]] for f in found)
        return float(miss[0]), float(apd[0]), float(asd[0])

    def _between(self, some: np.ndarray, others: np.ndarray) -> np.ndarray:
        rows, columns = self.candidates[some], self.candidates[others]
        return self.latency_us[rows[:, None], columns].astype(np.int64)

    def _miss(
        self, to_proxy: np.ndarray, apart: np.ndarray, sources: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The larger relative miss of the two means, and both means."""
        apd = to_proxy / (sources * self.diameter_us)
        asd = apart / (sources * (sources - 1) * self.diameter_us)
        off = np.abs(apd / self.wanted.apd - 1), np.abs(asd / self.wanted.asd - 1)
        return np.maximum(*off), apd, asd


_TRIED = 16  # candidates for each exchange
