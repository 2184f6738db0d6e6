"""A routing that knows what is to come: selectivities, speeds, and when they change.

It divides the rows of S between the two orders as is best under what holds at the moment: so that
the CPU or link with most to do has as little as possible, and all together as little as possible.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache

from thalweg.adapt.swap.policies.policy import Option
from thalweg.experiments.swap.setting import SITES, R, S, Setting, T
from thalweg.overlay.generator import Generator

STEPS = 1_000
TOLERANCE = 1e-9


@lru_cache
def best_share(setting: Setting, phase: int, now_us: int) -> float:
    """Of the rows of S that go to site 1 first."""
    loads = [_loads(setting, phase, now_us, first) for first in (R, T)]

    def worst_and_all(step: int) -> tuple[float, float]:
        share = step / STEPS
        both = [
            share * loads[0].get(k, 0.0) + (1 - share) * loads[1].get(k, 0.0)
            for k in {**loads[0], **loads[1]}
        ]
        return round(max(both) / TOLERANCE), sum(both)

    return min(range(STEPS + 1), key=worst_and_all) / STEPS


def _loads(setting: Setting, phase: int, now_us: int, first: int) -> dict[str, float]:
    """What a row of S takes of each CPU and link, in µs, if it is joined there first."""
    sigma = dict(zip((R, T), setting.selectivities[phase], strict=True))
    second = T if first == R else R
    costs = setting.costs
    found = {SITES[S]: setting.cpu_factor(SITES[S], now_us) * (costs.read + costs.send)}
    for site, rows, source in ((first, 1.0, S), (second, sigma[first], first)):
        name = SITES[site]
        work = rows * (costs.join + sigma[site] * costs.make)
        found[name] = found.get(name, 0.0) + work * setting.cpu_factor(name, now_us)
        link = f"{SITES[source]}>{name}"
        found[link] = rows * setting.link_us(SITES[source], name, now_us)
    return found


class Oracle:
    def __init__(self, setting: Setting, clock: Callable[[], int]) -> None:
        self._setting, self._clock = setting, clock
        self.chosen: Counter[str] = Counter()
        self._routed = 0
        self._owed = {R: 0.0, T: 0.0}

    def choose(self, options: Sequence[Option], rows: int, generator: Generator) -> int | None:
        phases, count = len(self._setting.selectivities), self._setting.rows[S]
        phase = min(phases - 1, self._routed * phases // count)
        moment = int(self._setting.at(self._clock()).from_s * self._setting.scale * 1e6)
        share = best_share(self._setting, phase, moment)
        room = {o.target: o.room for o in options}
        wanted = {R: self._owed[R] + share * rows, T: self._owed[T] + (1 - share) * rows}
        target = R if wanted[R] >= wanted[T] else T
        if room[target] <= 0:
            return None
        count = min(rows, room[target])
        self._routed += count
        self._owed[R] += share * count
        self._owed[T] += (1 - share) * count
        self._owed[target] -= count
        self.chosen["known"] += count
        return target

    def consumed(self, target: int, rows: int) -> None:
        pass

    def returned(self, target: int, rows: int) -> None:
        pass
