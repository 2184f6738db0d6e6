"""miniW: the heuristic that places operators, and improves any placement by moves and swaps.

It gives the final placement in any case: where macroW found one, by improving it; where macroW
found none, by its own (SQPR, V-B).
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import numpy as np

from thalweg.placement.arrays import NONE
from thalweg.placement.cost import Weights, shares, yardsticks
from thalweg.placement.soda.layout import Layout

Move = tuple[tuple[int, int], ...]  # (operator, the host it goes to)
Value = tuple[float, float, float]


def value(layout: Layout, weights: Weights) -> Value:
    """Less is better: what is overloaded, then the weighted objective, then how uneven it is."""
    hosts = layout.problem.hosts
    share = shares(layout.cpu, hosts.cpu)
    network = float(layout.in_bps.sum()) / yardsticks(layout.problem).bps
    weighed = weights.network * network + weights.balance * float(share.max(initial=0.0))
    # Rounded, so that the last digits of sums don't look like progress.
    return round(layout.overload(), 9), round(weighed, 9), round(float((share * share).sum()), 9)


def place_one(layout: Layout, operator: int, weights: Weights) -> None:
    """On the best of all hosts, though it may be too much even for that one."""
    best: Value = (inf, inf, inf)
    chosen = allowed_hosts(layout, operator)[0]
    for host in allowed_hosts(layout, operator):
        layout.put(operator, host)
        now = value(layout, weights)
        if now < best:
            best, chosen = now, host
        layout.lift(operator)
    layout.put(operator, chosen)


def allowed_hosts(layout: Layout, operator: int) -> range:
    pin = int(layout.problem.operators.pinned[operator])
    return range(len(layout.problem.hosts)) if pin == NONE else range(pin, pin + 1)


def improve(
    layout: Layout, weights: Weights, tries: int, may_run: Callable[[Layout], bool]
) -> None:
    """Moves and swaps away from the busiest host, each taken if it helps, `tries` at the most."""
    now = value(layout, weights)
    while tries > 0:
        for move in _promising(layout):
            undo = _make(layout, move)
            after = value(layout, weights)
            tries -= 1
            if after < now and may_run(layout):
                now = after
                break
            _make(layout, undo)
            if tries == 0:
                return
        else:
            return


def _make(layout: Layout, move: Move) -> Move:
    """Gives the move that undoes it."""
    back = tuple((operator, layout.lift(operator)) for operator, _ in move)
    for operator, host in move:
        layout.put(operator, host)
    return back


def _promising(layout: Layout) -> list[Move]:
    """What takes CPU off the busiest host without making another as busy; the evenest first."""
    problem = layout.problem
    gamma, capacity = problem.operators.cpu, problem.hosts.cpu
    busiest = int(np.argmax(_busyness(layout)))
    there = [o for o, h in layout.host_of.items() if h == busiest]
    free_to_move = [o for o in there if problem.operators.pinned[o] == NONE]
    peak = shares(layout.cpu, capacity)[busiest]
    found: list[tuple[float, Move]] = []

    def consider(host: int, taken: float, move: Move) -> None:
        here = (layout.cpu[busiest] - taken) / capacity[busiest]
        other = (layout.cpu[host] + taken) / capacity[host] if capacity[host] > 0 else inf
        if taken > 0 and other < peak:
            found.append((float(max(here, other)), move))

    for operator in free_to_move:
        for host in range(len(problem.hosts)):
            if host != busiest:
                consider(host, float(gamma[operator]), ((operator, host),))
        for other, host in layout.host_of.items():
            if host != busiest and problem.operators.pinned[other] == NONE:
                taken = float(gamma[operator] - gamma[other])
                consider(host, taken, ((operator, host), (other, busiest)))
    return [move for _, move in sorted(found)]


def _busyness(layout: Layout) -> np.typing.NDArray[np.float64]:
    """By CPU; a host whose bandwidth does not suffice is busier than any that has enough."""
    hosts = layout.problem.hosts
    network = np.maximum(shares(layout.out_bps, hosts.out_bps), shares(layout.in_bps, hosts.in_bps))
    return shares(layout.cpu, hosts.cpu) + np.where(network > 1.0, network, 0.0)
