"""The setting of COSMOS 5.4: R at site 1, S at site 2, T at site 3; R ⋈ S at 1, S ⋈ T at 3.

The source gives the sites' CPUs (table 5.2) and the slow link's 10 ms a tuple, and no cost of a
tuple. Costs here are such that its two moments fall into the middle of a run: links that swap at
250 s and loads that swap at 70 s. That takes about 1 ms for each row joined and each row made.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

import numpy as np

from thalweg.adapt.swap.query import SwapQuery
from thalweg.placement.swap.join_graph import AnnotatedJoinGraph, Edge, JoinGraph

SITES = ("site1", "site2", "site3")
SINK = "site4"  # where queries are submitted
R, S, T = range(3)
ROWS = (10_000, 100_000, 10_000)
SPEED = {"site1": 2.4, "site2": 1.0, "site3": 2.4, SINK: 2.4}  # GHz, table 5.2
FAR = 1 << 40  # a window that nothing leaves


@dataclass(frozen=True, slots=True)
class Costs:
    """Of a row, in µs on a CPU of 2.4 GHz."""

    read: float = 150.0
    send: float = 200.0  # of a row that was only read
    join: float = 1_000.0  # to build and probe
    make: float = 1_000.0  # a joined row, sent
    fast_link: float = 10.0
    slow_link: float = 10_000.0
    latency: int = 200


@dataclass(frozen=True, slots=True)
class Conditions:
    """What holds from a moment on: the slow site's links, and how many jobs share each CPU."""

    from_s: float = 0.0
    slow_site: str | None = None
    jobs: tuple[int, int, int] = (1, 1, 1)


@dataclass(frozen=True, slots=True)
class Setting:
    """`selectivities`: by phases of S of equal length, of R ⋈ S and S ⋈ T with respect to S."""

    selectivities: tuple[tuple[float, float], ...]
    conditions: tuple[Conditions, ...] = (Conditions(),)
    costs: Costs = Costs()
    scale: float = 1.0  # of all numbers of rows and moments
    seed: int = 1

    @property
    def rows(self) -> tuple[int, int, int]:
        r, s, t = (round(n * self.scale) for n in ROWS)
        return r, s, t

    def at(self, now_us: int) -> Conditions:
        moments = [c.from_s * self.scale * 1e6 for c in self.conditions]
        return self.conditions[bisect_right(moments, now_us) - 1]

    def link_us(self, source: str, target: str, now_us: int) -> float:
        slow = self.at(now_us).slow_site
        between = source in SITES and target in SITES and source != target
        is_slow = between and slow in (source, target)
        return self.costs.slow_link if is_slow else self.costs.fast_link

    def cpu_factor(self, site: str, now_us: int) -> float:
        """How many times as long as on an idle CPU of 2.4 GHz."""
        jobs = self.at(now_us).jobs[SITES.index(site)] if site in SITES else 1
        return jobs * SPEED["site1"] / SPEED[site]


def query() -> SwapQuery:
    graph = JoinGraph(("R", "S", "T"), (Edge(R, 0, S, 0), Edge(S, 0, T, 0)))
    annotated = AnnotatedJoinGraph(graph, tuple([(s,) for s in SITES]), (("site1",), ("site3",)))
    return SwapQuery("q", annotated, (FAR, FAR, FAR), ((R, 0), (S, 0), (T, 0)), SINK)


def values(setting: Setting) -> tuple[list[int], list[int], list[int]]:
    """The one attribute of each stream, uniform in a range for each phase of S.

    In its range, R has as many rows for each value as R ⋈ S has for each row of S, and T likewise.
    """
    rng = np.random.default_rng(setting.seed)
    count = setting.rows
    phases = len(setting.selectivities)
    length = count[S] // phases
    found: list[list[int]] = [[], [], []]
    for phase, (of_r, of_t) in enumerate(setting.selectivities):
        found[S] += rng.integers(0, 1 << 30, length).tolist()
        low = phase << 40
        shares = [
            sum(p[side] for p in setting.selectivities) for side in (0, 1)
        ]  # a stream's rows are divided among phases by their densities
        width = round(
            min(count[side * 2] / shares[side] if shares[side] else np.inf for side in (0, 1))
            if any(shares)
            else count[R]
        )
        found[S][-length:] = [low + v % width for v in found[S][-length:]]
        for stream, density in ((R, of_r), (T, of_t)):
            found[stream] += (low + rng.integers(0, width, round(density * width))).tolist()
    for stream in (R, T):  # the rest meets nothing
        rest = count[stream] - len(found[stream])
        found[stream] += list(range(-1 - stream * (1 << 40), -1 - stream * (1 << 40) - rest, -1))
        rng.shuffle(found[stream])
    return found[R], found[S], found[T]
