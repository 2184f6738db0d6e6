"""What goes wrong in a run: each seed draws afresh, so that a swarm of seeds meets every mixture.

Each kind of fault that a scenario allows is present in about half of the seeds, at a rate of its
own. A run with few kinds at high rates finds what a run with all of them hides (Groce et al.,
*Swarm testing*, 2012).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from thalweg.overlay.generator import Generator, seed_of
from thalweg.sim.kernel import SECOND_US
from thalweg.sim.weather import Rates

# Shares of messages, at most.
MESSAGE_FAULTS = {"loss": 0.15, "duplication": 0.2, "reordering": 0.3, "delay": 0.1}

# Mean time between two of them anywhere in the network: shortest, longest.
HAPPENINGS = {
    "clog": (2 * SECOND_US, 10 * SECOND_US),
    "partition": (8 * SECOND_US, 25 * SECOND_US),
    "one-way partition": (8 * SECOND_US, 25 * SECOND_US),
    "crash": (3 * SECOND_US, 15 * SECOND_US),
    "pause": (3 * SECOND_US, 15 * SECOND_US),
    "slow": (4 * SECOND_US, 20 * SECOND_US),
    "join": (2 * SECOND_US, 10 * SECOND_US),
    "leave": (4 * SECOND_US, 20 * SECOND_US),
}

# How a crashed machine comes back; where neither is drawn it stays dead.
RESTARTS = ("restart kept", "restart lost")

FAULTS = (*MESSAGE_FAULTS, *HAPPENINGS, *RESTARTS, "skew")


@dataclass(frozen=True, slots=True)
class Options:
    seed: int
    nodes: int
    latency_us: int
    rates: Rates
    mean_gap_us: Mapping[str, int]  # happenings, where present
    restarts: tuple[str, ...]
    skew: bool

    @property
    def present(self) -> tuple[str, ...]:
        """The kinds of faults that this run may meet, in the order of FAULTS."""
        found = {*self.mean_gap_us, *self.restarts, *(["skew"] if self.skew else [])}
        found |= {kind for kind in MESSAGE_FAULTS if getattr(self.rates, kind) > 0}
        return tuple(kind for kind in FAULTS if kind in found)

    def lines(self) -> list[str]:
        """For people: one option a line."""
        found = [f"nodes {self.nodes}", f"latency {self.latency_us / 1000:g} ms"]
        found += [
            f"{kind} {getattr(self.rates, kind):.1%}"
            for kind in MESSAGE_FAULTS
            if getattr(self.rates, kind) > 0
        ]
        found += [f"{k} every {gap / SECOND_US:.1f} s" for k, gap in self.mean_gap_us.items()]
        found += [f"{kind} after a crash" for kind in self.restarts]
        return found + (["skew of clocks"] if self.skew else [])


def draw(
    seed: int, allowed: Iterable[str], fewest: int, most: int, nodes: int | None = None
) -> Options:
    """The options of a seed, for a scenario that allows these faults and cluster sizes."""
    allowed = frozenset(allowed)
    if unknown := sorted(allowed - set(FAULTS)):
        raise ValueError(f"no such fault: {', '.join(unknown)}; there are {', '.join(FAULTS)}")
    generator = Generator(seed_of(seed, "options"))
    # The same draws whatever is allowed, so that a kind's rate does not depend on other kinds.
    size = fewest + min(generator.below(most - fewest + 1), generator.below(most - fewest + 1))
    latency_us = generator.between(1_000, 60_000)
    shares = {k: _share(generator, top, k in allowed) for k, top in MESSAGE_FAULTS.items()}
    gaps = {kind: (generator.chance(0.5), generator.between(*b)) for kind, b in HAPPENINGS.items()}
    restarts = tuple(k for k in RESTARTS if generator.chance(0.5) and k in allowed)
    skew = generator.chance(0.5) and "skew" in allowed
    return Options(
        seed=seed,
        nodes=size if nodes is None else nodes,
        latency_us=latency_us,
        rates=Rates.of(shares),
        mean_gap_us={k: gap for k, (on, gap) in gaps.items() if on and k in allowed},
        restarts=restarts,
        skew=skew,
    )


def _share(generator: Generator, top: float, allowed: bool) -> float:
    present, share = generator.chance(0.5), generator.unit() * top
    return share if present and allowed else 0.0
