"""Moving queries one by one to where they cost less, of graphs whose edges can't be listed.

What every query pays everywhere is computed at once. Nearly all that would like to move find no
room where they would go, and that is seen without another look at their edges: only for the few for
which a move seems to pay is it computed again, given where all others are by then.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from thalweg.placement.arrays import Flags, Ints, ints
from thalweg.placement.cosmos.model import Substreams, Vertices
from thalweg.placement.cosmos.places import Places
from thalweg.placement.cosmos.view import View

ROUNDED = 1e-6  # of a query's cost: smaller gains are none
_ENTRIES = 1 << 24  # of a matrix of costs: more queries are looked at part by part
_ABREAST = 1_000  # queries that are asked at once whether a move seems to pay

Costs = npt.NDArray[np.float32]  # [query, place]


def sweep(
    vertices: Vertices,
    substreams: Substreams,
    seen: View,
    mapping: Ints,
    *,
    passes: int = 4,
    least_gain: float = ROUNDED,
) -> Ints:
    """Moves that pay, the largest gain first, until hardly any is left or `passes` are over.

    Vertices at places with too much load come first, and move even where that does not pay. All
    others must save `least_gain` of their cost.
    """
    places = Places(vertices, substreams, seen)
    places.put_all(vertices, substreams, mapping)
    at_once = max(1, _ENTRIES // len(seen.limits))
    for _ in range(passes):
        moved = 0
        for first in range(0, len(vertices), at_once):
            last = min(first + at_once, len(vertices))
            moved += _moves(places, first, last, max(least_gain, ROUNDED))
        if moved <= len(vertices) // 500:
            break
    return ints(places.mapping)


def _moves(places: Places, first: int, last: int, least_gain: float) -> int:
    """Of the vertices from first to last; how many moved."""
    cost = places.all_costs(first, last)
    moved = 0
    for some in _in_order(places, cost, first):
        promising = some[_seems_to_pay(places, cost[some], first + some, least_gain)]
        for v in (first + promising).tolist():
            at, exact = int(places.mapping[v]), places.costs(v)
            to = places.best(v, exact)
            pays = exact[at] - exact[to] > least_gain * abs(exact[at])
            if to != at and (pays or places.load[at] > places.most[at]):
                places.put(v, to)
                moved += 1
    return moved


def _in_order(places: Places, cost: Costs, first: int) -> Iterator[npt.NDArray[np.int64]]:
    """Rows of the matrix: those at crowded places, then those that could gain, most first."""
    at = places.mapping[first : first + len(cost)]
    gain = cost[np.arange(len(cost)), at] - cost.min(axis=1)
    crowded = (places.load > places.most)[at]
    order = np.lexsort((-gain, ~crowded))
    order = order[(gain > 0)[order] | crowded[order]]
    for start in range(0, len(order), _ABREAST):
        yield order[start : start + _ABREAST]


def _seems_to_pay(
    places: Places, cost: Costs, vertices: npt.NDArray[np.int64], least_gain: float
) -> Flags:
    """By costs as they were before the sweep, and by loads as they are now."""
    at, weight = places.mapping[vertices], places.weight[vertices]
    here = cost[np.arange(len(cost)), at]
    room = weight[:, None] <= places.most - places.load
    best = np.where(room, cost, np.inf).min(axis=1)
    found: Flags = here - best > least_gain * np.abs(here)
    return found | (places.load > places.most)[at]
