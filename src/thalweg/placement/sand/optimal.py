"""The cheapest placement there is: everyone's yardstick, and a strategy of its own.

Without a bound on latency, dynamic programming over nodes × hosts is exact. With one, the delay is
a further dimension: of each subtree at each host a front is kept, all (delay, cost) of which none
beats another. Fronts of all hosts would be large, so first hosts are ruled out that can't be part
of a placement in time, or of one that is as cheap as a known one (`multipliers`). What is then
left is searched completely, first for costs close to the lower bound, and farther off as long as
nothing is found. Nothing is rounded, sampled or cut off: the answer is the optimum.
"""

from __future__ import annotations

from thalweg.placement.arrays import Floats, Ints
from thalweg.placement.sand.configurations import Ways
from thalweg.placement.sand.dynamic import (
    Hosts,
    all_hosts,
    earliest,
    least_cost,
    least_delay_ms,
    least_rest_ms,
)
from thalweg.placement.sand.in_network import in_network
from thalweg.placement.sand.multipliers import narrow
from thalweg.placement.sand.placeable import Unplaceable, check_possible, limit_ms
from thalweg.placement.sand.placing import place
from thalweg.placement.sand.searching import search
from thalweg.placement.sand.tree import ROUNDING, Tree

_FIRST_GAP = 1e-3  # of the cost, above the lower bound
_WIDER = 8.0
_K = 100  # of In-Network, which gives the first known placement


def optimal(tree: Tree, ways: Ways) -> Ints:
    latency_ms = ways.latency_ms
    check_possible(tree, latency_ms)
    at = least_cost(tree, latency_ms)
    if tree.delay_ms(at, latency_ms) <= limit_ms(tree):
        return at
    narrowed = narrow(
        tree, _in_time(tree, latency_ms), latency_ms, limit_ms(tree), _known(tree, ways)
    )
    gap = _FIRST_GAP * narrowed.cost
    while gap > 0 and narrowed.least + gap < narrowed.cost:
        found = search(tree, narrowed, latency_ms, limit_ms(tree), narrowed.least + gap)
        if found is not None:
            return found
        gap *= _WIDER
    # Only the last digits can keep the search from finding what is known.
    most = narrowed.cost * (1 + ROUNDING)
    found = search(tree, narrowed, latency_ms, limit_ms(tree), most)
    return narrowed.at if found is None else found


def _in_time(tree: Tree, latency_ms: Floats) -> Hosts:
    """Without the hosts at which a node makes some way too long, wherever the others stand."""
    hosts = all_hosts(tree, len(latency_ms))
    early = least_delay_ms(tree, hosts, latency_ms)
    rest = least_rest_ms(tree, hosts, latency_ms)
    limit = limit_ms(tree)
    return [h[e + r <= limit] for h, e, r in zip(hosts, early, rest, strict=True)]


def _known(tree: Tree, ways: Ways) -> Ints:
    """Some placement in time, the cheaper the better."""
    try:
        return place(tree, ways, in_network(_K))
    except Unplaceable:  # not over straight ways
        return earliest(tree, ways.latency_ms)
