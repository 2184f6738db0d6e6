"""What an oracle could reach that knows all that is to come: a linear programme.

Rows of S flow; for each phase of S, each order and each pair of moments, a variable says how many
are joined first in one stretch of time and second in the same or a later one. CPUs and links have
the capacity of their stretch. The least time in which everything fits bounds every routing from
below: it neither waits for the first rows nor for statistics.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from scipy.optimize import linprog

from thalweg.experiments.swap.setting import SITES, R, S, Setting, T


def bound_s(setting: Setting) -> float:
    """The least number of stretches is taken in which everything fits."""
    moments = [c.from_s * setting.scale for c in setting.conditions]
    for stretches in range(1, len(moments) + 1):
        found = _least_s(setting, moments[:stretches])
        if found is not None and (stretches == len(moments) or found <= moments[stretches]):
            return found
    raise AssertionError("the last stretch has no end")


def _least_s(setting: Setting, moments: list[float]) -> float | None:
    """The last stretch is as long as it must be; those before it have their length."""
    stretches, phases = len(moments), len(setting.selectivities)
    ways = [
        (phase, first, a, b)
        for phase, first, a, b in product(range(phases), (R, T), range(stretches), range(stretches))
        if a <= b
    ]
    count, own = len(ways), [(stream, a) for stream in (R, T) for a in range(stretches)]
    variables = count + len(own) + 1  # rows by way, rows of R and T by stretch, and the last length
    uses: dict[tuple[str, int], dict[int, float]] = {}

    def use(resource: str, stretch: int, variable: int, us: float) -> None:
        if us:
            of = uses.setdefault((resource, stretch), {})
            of[variable] = of.get(variable, 0.0) + us / 1e6

    costs = setting.costs
    for number, (phase, first, a, b) in enumerate(ways):
        sigma = dict(zip((R, T), setting.selectivities[phase], strict=True))
        second = T if first == R else R
        at_a, at_b = (round(moments[s] * 1e6) for s in (a, b))
        for stretch, moment, site, rows, source in (
            (a, at_a, first, 1.0, S),
            (b, at_b, second, sigma[first], first),
        ):
            name = SITES[site]
            cpu = setting.cpu_factor(name, moment)
            use(name, stretch, number, rows * (costs.join + sigma[site] * costs.make) * cpu)
            link = setting.link_us(SITES[source], name, moment)
            use(f"{SITES[source]}>{name}", stretch, number, rows * link)
        reads = setting.cpu_factor(SITES[S], at_a) * (costs.read + costs.send)
        use(SITES[S], a, number, reads)
    for number, (stream, a) in enumerate(own, count):
        cpu = setting.cpu_factor(SITES[stream], round(moments[a] * 1e6))
        use(SITES[stream], a, number, (costs.read + costs.join) * cpu)
    return _solved(setting, moments, ways, own, uses, variables)


def _solved(
    setting: Setting,
    moments: list[float],
    ways: list[tuple[int, int, int, int]],
    own: list[tuple[int, int]],
    uses: dict[tuple[str, int], dict[int, float]],
    variables: int,
) -> float | None:
    last = len(moments) - 1
    limits, lengths = [], []
    for (_, stretch), of in uses.items():
        row = np.zeros(variables)
        for variable, seconds in of.items():
            row[variable] = seconds
        if stretch == last:
            row[-1] = -1.0
        limits.append(row)
        lengths.append(0.0 if stretch == last else moments[stretch + 1] - moments[stretch])
    equal, rows = [], []
    phases = len(setting.selectivities)
    for phase in range(phases):
        equal.append([float(w[0] == phase) for w in ways] + [0.0] * (variables - len(ways)))
        rows.append(setting.rows[S] // phases)
    for stream in (R, T):
        equal.append([0.0] * len(ways) + [float(o[0] == stream) for o in own] + [0.0])
        rows.append(setting.rows[stream])
    goal = np.zeros(variables)
    goal[-1] = 1.0
    found = linprog(goal, np.array(limits), np.array(lengths), np.array(equal), np.array(rows))
    return moments[-1] + float(found.x[-1]) if found.status == 0 else None
