"""macroW: operators placed by one mixed integer programme, across all queries (SQPR, V-B).

    a[o,h]   operator o runs at host h              Σ over h is 1
    r[s,h]   stream s is received at host h         r ≥ a[user,h] − a[maker,h]

CPU and bandwidth of every host hold, what the layout has stays, and the busiest host's load weighs
with the traffic. `planner` asks with an empty layout, so that every operator may move, and where
that finds nothing, for the new ones alone. Which host sends what a new operator makes would take a
variable for each pair of hosts, and most of the time: that is left to the check that follows. The
work limit is in nodes of the search tree. None is the answer where nothing was found: then miniW
places.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from thalweg.placement.arrays import NONE
from thalweg.placement.cost import Weights, yardsticks
from thalweg.placement.milp.highs import solve
from thalweg.placement.milp.linear import INFINITY, Model, Terms
from thalweg.placement.soda.layout import Layout

MOST_BINARIES = 8_000  # beyond that, not even the first relaxation comes in time
GAP = 0.1  # miniW goes on from there
_SECONDS = 60.0  # a safety net; the limit that counts is in nodes


def place_all(
    layout: Layout,
    added: Sequence[int],
    served: Sequence[int],
    weights: Weights,
    nodes: int,
    gap: float = GAP,
) -> dict[int, int] | None:
    """A host for each added operator; `served` are the streams that are newly handed out."""
    if len(added) * len(layout.problem.hosts) > MOST_BINARIES or nodes == 0:
        return None
    programme = _Programme(layout, added, served, weights)
    answer = solve(programme.model, nodes=nodes, gap=gap, seconds=_SECONDS)
    if answer.values is None:
        return None
    return {o: int(np.argmax([answer.values[v] for v in at])) for o, at in programme.at.items()}


class _Programme:
    def __init__(
        self, layout: Layout, added: Sequence[int], served: Sequence[int], weights: Weights
    ) -> None:
        self.layout = layout
        self.problem = layout.problem
        self.model = Model()
        hosts = len(self.problem.hosts)
        self.at = {o: [self.model.binary(0.0) for _ in range(hosts)] for o in added}
        self.cpu: list[Terms] = [[] for _ in range(hosts)]
        self.out: list[Terms] = [[] for _ in range(hosts)]
        self.into: list[Terms] = [[] for _ in range(hosts)]
        self.maker = {int(self.problem.operators.output[o]): o for o in added}
        self._assignments()
        total = yardsticks(self.problem).bps
        self._receptions(weights.network / total if total > 0 else 0.0)
        self._results(served)
        self.model.busiest = self.model.binary(weights.balance)
        self._capacities(self.model.busiest)

    def _assignments(self) -> None:
        for operator, variables in self.at.items():
            self.model.row(1.0, [(v, 1.0) for v in variables], 1.0)
            pin = int(self.problem.operators.pinned[operator])
            for host, variable in enumerate(variables):
                self.cpu[host].append((variable, float(self.problem.operators.cpu[operator])))
                if pin not in (NONE, host):
                    self.model.row(0.0, [(variable, 1.0)], 0.0)

    def _receptions(self, price_of_bps: float) -> None:
        users: dict[int, list[int]] = {}
        for operator in self.at:
            for stream in self.problem.operators.inputs[operator].tolist():
                users.setdefault(stream, []).append(operator)
        for stream, operators in users.items():
            rate = float(self.problem.streams.rate_bps[stream])
            for host in range(len(self.problem.hosts)):
                if self.layout.at_hand(stream, host):
                    continue
                received = self.model.binary(rate * price_of_bps)
                self.into[host].append((received, rate))
                if stream not in self.maker:
                    self.out[self.layout.origin(stream)].append((received, rate))
                for operator in operators:
                    terms = [(received, 1.0), (self.at[operator][host], -1.0)]
                    if stream in self.maker:
                        terms.append((self.at[self.maker[stream]][host], 1.0))
                    self.model.row(0.0, terms, INFINITY)

    def _results(self, served: Sequence[int]) -> None:
        for stream in served:
            if stream in self.maker:
                rate = float(self.problem.streams.rate_bps[stream])
                for host, variable in enumerate(self.at[self.maker[stream]]):
                    self.out[host].append((variable, rate))

    def _capacities(self, busiest: int) -> None:
        hosts, layout = self.problem.hosts, self.layout
        for host in range(len(hosts)):
            for terms, used, capacity in (
                (self.cpu[host], layout.cpu[host], hosts.cpu[host]),
                (self.out[host], layout.out_bps[host], hosts.out_bps[host]),
                (self.into[host], layout.in_bps[host], hosts.in_bps[host]),
            ):
                if terms and capacity < INFINITY:
                    scale = capacity if capacity > 0 else 1.0
                    scaled = [(v, factor / scale) for v, factor in terms]
                    self.model.row(-INFINITY, scaled, (capacity - used) / scale)
            whole = float(hosts.cpu[host])
            if 0 < whole < INFINITY:
                loads = [(v, -factor / whole) for v, factor in self.cpu[host]]
                self.model.row(layout.cpu[host] / whole, [(busiest, 1.0), *loads], INFINITY)
