"""Greedy (COSMOS 4.2.3, Algorithm 4.2): node by node, each where the loss grows least.

Nodes join in the order of d(s, i) + t^p + t^c. All possible parents of a newcomer are looked at
together. Whoever is on its way from the home would demand its own demand joined with the
newcomer's, wherever the newcomer hangs below. So what each edge of the tree would cost more is
computed once, for all edges, and added up along the ways: a newcomer costs O(nodes · objects).

Trees of several cargos are built side by side: each node joins all its trees before the next one
comes, and sees what it would do to the load of a node in all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from thalweg.placement.arrays import Floats
from thalweg.placement.trees.cost import serving_s, waiting_s
from thalweg.placement.trees.growing import Growing, Totals
from thalweg.placement.trees.model import HOME, Cargo, Forest, Nodes


class Greedy:
    name = "greedy"
    about = "near and quick nodes first, each where the loss grows least"

    def build(self, nodes: Nodes, cargos: Sequence[Cargo], seed: int = 0) -> Forest:
        totals = Totals(len(nodes))
        trees = [Growing(nodes, c, totals) for c in cargos]
        for node in join_order(nodes):
            for tree in trees:
                if tree.cargo.members[node]:
                    tree.add(node, best_parent(nodes, tree, node))
        return tuple(t.parents() for t in trees)


def join_order(nodes: Nodes) -> list[int]:
    near = nodes.delay_s[HOME] + nodes.filter_s + nodes.send_s
    order = np.argsort(near, kind="stable")
    return [int(i) for i in order if i != HOME]


def best_parent(nodes: Nodes, tree: Growing, node: int) -> int:
    return int(tree.ids[int(growth(nodes, tree, node).argmin())])


def growth(nodes: Nodes, tree: Growing, node: int) -> Floats:
    """By how much the summed loss grows if the node hangs under each of the tree."""
    cargo, n = tree.cargo, len(tree)
    ids, above = tree.ids, tree.above[1:n]
    weight, wanted = cargo.weight[node], cargo.own[node]
    new_rate = float(cargo.rates(wanted).sum())
    demand = cargo.join(tree.demand[:n], wanted)
    rates = cargo.rates(demand)
    more = rates.sum(axis=1) - tree.total[:n]
    begins = (demand != 0) & (tree.demand[:n] == 0)  # a child that starts to want an object
    # A node as the newcomer's parent, and as one through whose child the newcomer is reached.
    fan, wants = tree.fan[:n], wanted != 0
    direct = _cost(nodes, tree, ids, rates, fan + wants, tree.sends[:n] + new_rate, 1, weight)
    through = _cost(
        nodes,
        tree,
        ids[above],
        rates[above],
        fan[above] + begins[1:],
        tree.sends[above] + more[1:],
        0,
        weight,
    )
    now = tree.local(ids)
    step = np.zeros(n)
    step[1:] = through - now[above] + weight * nodes.delay_s[ids[above], ids[1:]]
    along = np.zeros(n)
    for level in tree.levels():
        along[level] = along[tree.above[level]] + step[level]
    found: Floats = along + direct - now + weight * nodes.delay_s[ids, node]
    return found


def _cost(
    nodes: Nodes,
    tree: Growing,
    ids: np.ndarray,
    rates: Floats,
    fan: np.ndarray,
    sends: Floats,
    children: int,
    weight: float,
) -> Floats:
    """Of nodes that pass on this, to their children and so many more."""
    at, totals = tree.place[ids], tree.totals
    filter_s, send_s = nodes.filter_s[ids], nodes.send_s[ids]
    busy = filter_s * (rates * fan).sum(axis=1) + send_s * sends
    rate = (rates * (fan > 0)).sum(axis=1)
    waits = waiting_s(
        totals.busy[ids] - tree.busy[at] + busy,
        totals.rate[ids] - tree.rate[at] + rate,
        graded=True,
    )
    serves = serving_s(filter_s, send_s, busy, rate, tree.children[at] + children)
    found: Floats = (totals.below[ids] + weight) * waits + (tree.below[at] + weight) * serves
    return found
