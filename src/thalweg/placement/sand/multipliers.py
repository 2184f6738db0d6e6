"""A price on delay that makes the cheapest placement nearly meet its bound (Lagrange).

A source whose way must not take longer than the bound gets a multiplier μ: a price on its delay.
Its way is a sum over edges, so the price just adds to the rates of the edges that it passes:
β′ = β + Σ μ of the sources below. The same dynamic programme then gives, for any μ ≥ 0, a cost
that no placement within the bound can undercut:

    min over placements of Σ β′·d  −  bound · Σ μ

and with `outside`, the same for all placements with one node at one host. Hosts for which that
exceeds the cost of a known placement are ruled out for that node. Subgradient steps (Polyak) raise
the bound; whatever they end with is right, the better only makes what remains smaller.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from thalweg.placement.arrays import Floats, Ints
from thalweg.placement.sand.dynamic import Hosts, inside, outside, read_off
from thalweg.placement.sand.tree import ROUNDING, Tree

_STEPS = 60
_CLOSE = 1e-4  # of the cost: a gap between bound and best that is not worth another step
_SHORTER = 0.7  # a step that did not help was too long
_SHORTEST = 0.2


@dataclass(frozen=True, slots=True, eq=False)
class Narrowed:
    """What is left to decide, and with which prices that was found."""

    at: Ints  # the cheapest placement within the bound that was met on the way
    cost: float  # its cost
    least: float  # no placement within the bound costs less than this
    hosts: Hosts
    multipliers: Floats  # of each node, Σ μ of the sources below it
    rest: list[Floats]  # `outside` at these multipliers, less bound · Σ μ


def narrow(tree: Tree, hosts: Hosts, distance: Floats, limit_ms: float, known: Ints) -> Narrowed:
    """From a known placement within the limit: prices, a bound, and fewer hosts."""
    sources = np.array(tree.sources)
    mu, scale = np.zeros(len(sources)), 1.0
    best = Narrowed(known, tree.cost(known, distance), -np.inf, hosts, np.zeros(len(tree)), [])
    for _ in range(_STEPS):
        passing = _passing(tree, sources, mu)
        prices, paid = tree.rate_bps + passing, limit_ms * float(mu.sum())
        cost, arrival = inside(tree, best.hosts, distance, prices)
        least = float(cost[-1][0]) - paid
        at = read_off(tree, best.hosts, distance, prices, cost)
        late = tree.delays_ms(at, distance) - limit_ms
        true_cost = tree.cost(at, distance)
        if late.max() <= 0 and true_cost < best.cost:
            best = replace(best, at=at, cost=true_cost)
        if least > best.least:
            rest = outside(tree, best.hosts, distance, prices, cost, arrival)
            best = _ruled_out(replace(best, least=least, multipliers=passing), cost, rest, paid)
        else:
            scale *= _SHORTER
        slope = np.where((mu > 0) | (late > 0), late, 0.0)
        steepness = float((slope**2).sum())
        if best.cost - best.least <= _CLOSE * best.cost or steepness == 0 or scale < _SHORTEST:
            break
        mu = np.maximum(0.0, mu + scale * (best.cost - least) / steepness * slope)
    return best


def _passing(tree: Tree, sources: NDArray[np.int64], mu: Floats) -> Floats:
    """Of each node, the multipliers of all sources whose way passes it."""
    passing = np.zeros(len(tree))
    passing[sources] = mu
    for node in range(tree.root):
        passing[tree.parent[node]] += passing[node]
    return passing


def _ruled_out(found: Narrowed, cost: list[Floats], rest: list[Floats], paid: float) -> Narrowed:
    """Without the hosts that no placement as cheap as the known one can use."""
    enough = found.cost * (1 + ROUNDING)
    kept = [c + r - paid <= enough for c, r in zip(cost, rest, strict=True)]
    return replace(
        found,
        hosts=[h[k] for h, k in zip(found.hosts, kept, strict=True)],
        rest=[r[k] - paid for r, k in zip(rest, kept, strict=True)],
    )
