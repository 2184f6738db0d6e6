"""One run of a site: what changes at which second, and what is seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from statistics import fmean

import numpy as np

from thalweg.adapt.partners.settings import Settings
from thalweg.experiments.fragments.site import Seen, Site
from thalweg.experiments.fragments.workload import RATE, Sizes, Workload, draw

STATIC = Settings(max1=0, max2=0, explore_rounds=0, homing=False)


def partners(max1: int, **changes: object) -> Settings:
    """With max₂ = ⌈max₁ / 2⌉, as in the source."""
    return replace(Settings(), max1=max1, max2=ceil(max1 / 2), **changes)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Change:
    """From this second on: streams of these nodes are so many times as fast, or these nodes have
    so much other work that their load is this."""

    second: int
    nodes: tuple[int, ...]
    factor: float = 1.0
    load: float = 0.0


@dataclass(slots=True)
class Course:
    seen: Seen
    site: Site
    back: dict[str, float] = field(default_factory=dict)


def play(
    sizes: Sizes,
    settings: Settings,
    seconds: int,
    seed: int,
    changes: Sequence[Change] = (),
    work: Workload | None = None,
) -> Course:
    site = Site(work or draw(sizes, seed), sizes.nodes, settings, seed)
    by_second: Mapping[int, list[Change]] = {
        c.second: [d for d in changes if d.second == c.second] for c in changes
    }

    def on_second(second: int) -> None:
        for change in by_second.get(second, ()):
            nodes = np.array(change.nodes, int)
            streams = np.isin(site.work.delegate, nodes)
            site.rates[streams] = RATE * change.factor
            if change.load:
                site.extern[nodes] = np.maximum(0.0, change.load - site.busy[nodes])

    site.run(seconds, on_second)
    return Course(site.seen, site)


def mean(values: Sequence[float], begin: int, end: int) -> float:
    """Over the seconds [begin, end)."""
    return fmean(values[begin:end])


def seconds_to_converge(stdevs: Sequence[float], final: float) -> int:
    """The first second from which on the spread stays within a quarter above the final one."""
    bound = 1.25 * final + 0.005
    last_above = max((i for i, s in enumerate(stdevs) if s > bound), default=-1)
    return last_above + 1


def perturbed(count: int, nodes: int, seed: int) -> tuple[int, ...]:
    rng = np.random.default_rng(seed + 100)
    return tuple(sorted(rng.choice(nodes, count, replace=False).tolist()))
