"""Dynamic programming over nodes × hosts: exact for trees whose operators may stand anywhere.

Each subtree's least cost depends on the host of its top alone, so one pass from the sources up
finds the best of all hosts^operators placements. (SAND 3.2 calls the problem NP-complete; that
holds for general graphs and for limited hosts, not for trees with free locations.) A second pass,
from the root down, finds what everything *outside* a subtree costs at least: the sum of both is
the least cost of any placement with that node at that host.

Each node has its own list of hosts in question, so that whoever can rule hosts out gets smaller
matrices. Distances are costs per unit; an edge's price is what it has to pay of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from thalweg.placement.arrays import NONE, Floats, Ints, ints
from thalweg.placement.sand.configurations import priced
from thalweg.placement.sand.tree import Tree

Hosts = list[Ints]  # of each node, the hosts in question

_ROWS_AT_ONCE = 64


def all_hosts(tree: Tree, count: int) -> Hosts:
    everywhere = np.arange(count, dtype=np.int32)
    return [everywhere if p == NONE else np.array([p], np.int32) for p in tree.pinned.tolist()]


def distances(hosts: Hosts, distance: Floats, below: int, above: int) -> Floats:
    """[host of below, host of above]; the whole matrix is not copied."""
    rows, columns = hosts[below], hosts[above]
    if len(rows) == len(columns) == len(distance):
        return distance
    return distance[np.ix_(rows, columns)]


def arrivals(ways: Floats, price: float, start: Floats) -> Floats:
    """By column, the least of start + price × way over the rows."""
    least = np.full(ways.shape[1], np.inf)
    for rows in _blocks(len(ways)):
        found = priced(price, ways[rows])
        found += start[rows, None]
        np.minimum(least, found.min(axis=0), out=least)
    return least


def departures(ways: Floats, price: float, goal: Floats) -> Floats:
    """By row, the least of price × way + goal over the columns."""
    least = np.full(len(ways), np.inf)
    for rows in _blocks(len(ways) if ways.shape[1] else 0):
        found = priced(price, ways[rows])
        found += goal
        least[rows] = found.min(axis=1)
    return least


def _blocks(count: int) -> Iterator[slice]:
    """What is worked on stays in the cache: four times as fast as in one piece."""
    return (slice(first, first + _ROWS_AT_ONCE) for first in range(0, count, _ROWS_AT_ONCE))


def inside(
    tree: Tree, hosts: Hosts, distance: Floats, prices: Sequence[float] | Floats
) -> tuple[list[Floats], list[Floats]]:
    """Of each node's subtree the least cost, by its host; and by its taker's host, on arrival."""
    cost = [np.zeros(len(h)) for h in hosts]
    arrival = [np.zeros(0)] * len(tree)
    for node in range(tree.root):
        above = int(tree.parent[node])
        ways = distances(hosts, distance, node, above)
        arrival[node] = arrivals(ways, float(prices[node]), cost[node])
        cost[above] += arrival[node]
    return cost, arrival


def outside(
    tree: Tree,
    hosts: Hosts,
    distance: Floats,
    prices: Sequence[float] | Floats,
    cost: list[Floats],
    arrival: list[Floats],
) -> list[Floats]:
    """Of each node, by its host, the least cost of everything that is not in its subtree."""
    rest = [np.zeros(len(h)) for h in hosts]
    for node in range(tree.root - 1, -1, -1):
        above = int(tree.parent[node])
        possible = np.isfinite(arrival[node])
        others = np.full(len(possible), np.inf)
        others[possible] = rest[above][possible] + cost[above][possible] - arrival[node][possible]
        ways = distances(hosts, distance, node, above)
        rest[node] = departures(ways, float(prices[node]), others)
    return rest


def read_off(
    tree: Tree,
    hosts: Hosts,
    distance: Floats,
    prices: Sequence[float] | Floats,
    cost: list[Floats],
) -> Ints:
    """The placement behind the least cost, from the root down; of equals the first host."""
    at = np.empty(len(tree), np.int32)
    at[tree.root] = tree.proxy
    for node in range(tree.root - 1, -1, -1):
        ways = distance[hosts[node], at[tree.parent[node]]]
        at[node] = hosts[node][int(np.argmin(cost[node] + priced(float(prices[node]), ways)))]
    return ints(at)


def least_cost(tree: Tree, distance: Floats) -> Ints:
    """The cheapest placement of all, whatever its delay."""
    hosts = all_hosts(tree, len(distance))
    cost, _ = inside(tree, hosts, distance, tree.rate_bps)
    return read_off(tree, hosts, distance, tree.rate_bps, cost)


def least_delay_ms(tree: Tree, hosts: Hosts, latency_ms: Floats) -> list[Floats]:
    """Of each node, by its host: how early its output can be there, the others ideally placed."""
    early = [np.zeros(len(h)) for h in hosts]
    for node in range(tree.root):
        above = int(tree.parent[node])
        ways = distances(hosts, latency_ms, node, above)
        np.maximum(early[above], arrivals(ways, 1.0, early[node]), out=early[above])
    return early


def least_rest_ms(tree: Tree, hosts: Hosts, latency_ms: Floats) -> list[Floats]:
    """Of each node, by its host: the shortest way from there to the proxy through its takers."""
    rest = [np.zeros(len(h)) for h in hosts]
    for node in range(tree.root - 1, -1, -1):
        above = int(tree.parent[node])
        ways = distances(hosts, latency_ms, node, above)
        rest[node] = departures(ways, 1.0, rest[above])
    return rest


def earliest(tree: Tree, latency_ms: Floats) -> Ints:
    """The placement whose longest way is the shortest, whatever it costs."""
    hosts = all_hosts(tree, len(latency_ms))
    early = least_delay_ms(tree, hosts, latency_ms)
    at = np.empty(len(tree), np.int32)
    at[tree.root] = tree.proxy
    for node in range(tree.root - 1, -1, -1):
        ways = latency_ms[hosts[node], at[tree.parent[node]]]
        at[node] = hosts[node][int(np.argmin(early[node] + ways))]
    return ints(at)
