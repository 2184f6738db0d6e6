"""The best balance that any assignment of fragments to nodes has, on small instances.

By observation 6.1 of the source (COSMOS 6.1.2) the worst PPR is least where the busiest node is as
little busy as can be: multiprocessor scheduling. Branch and bound: the heaviest fragment first, on
each node that does not look like one tried before; a branch ends where its busiest node, or the
mean, is no better than the best assignment known.
"""

from __future__ import annotations

from collections.abc import Sequence

MOST_FRAGMENTS = 24


def best_balance(
    loads: Sequence[float], nodes: int, fixed: Sequence[float] | None = None
) -> tuple[float, tuple[int, ...]]:
    """The least load of the busiest node, and a node for each fragment; `fixed` can't move."""
    base = list(fixed) if fixed is not None else [0.0] * nodes
    if nodes < 1 or len(base) != nodes:
        raise ValueError(f"{nodes} nodes, and loads that can't move of {len(base)}")
    if len(loads) > MOST_FRAGMENTS:
        raise ValueError(f"{len(loads)} fragments: the optimum is for {MOST_FRAGMENTS} at most")
    if any(load < 0 for load in (*loads, *base)):
        raise ValueError("loads can't be negative")
    order = sorted(range(len(loads)), key=lambda f: (-loads[f], f))
    floor = max([*base, (sum(loads) + sum(base)) / nodes, *loads])
    place, best_place = [0] * len(loads), _greedy(loads, order, base)
    best = _busiest(loads, best_place, base)
    at = list(base)

    def search(depth: int, busiest: float) -> None:
        nonlocal best, best_place
        if busiest >= best - 1e-12 or best <= floor + 1e-12:
            return
        if depth == len(order):
            best, best_place = busiest, list(place)
            return
        fragment, tried = order[depth], set()
        for node in sorted(range(nodes), key=lambda n: (at[n], n)):
            if at[node] in tried:
                continue
            tried.add(at[node])
            before = at[node]
            at[node] = before + loads[fragment]
            place[fragment] = node
            search(depth + 1, max(busiest, at[node]))
            at[node] = before

    search(0, max(base))
    return best, tuple(best_place)


def _greedy(loads: Sequence[float], order: Sequence[int], base: Sequence[float]) -> list[int]:
    at, place = list(base), [0] * len(loads)
    for fragment in order:
        place[fragment] = min(range(len(at)), key=lambda n: (at[n], n))
        at[place[fragment]] += loads[fragment]
    return place


def _busiest(loads: Sequence[float], place: Sequence[int], base: Sequence[float]) -> float:
    at = list(base)
    for fragment, node in enumerate(place):
        at[node] += loads[fragment]
    return max(at)
