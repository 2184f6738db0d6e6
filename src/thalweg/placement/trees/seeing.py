"""The view that each node of a forest has when all that it is told is right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from thalweg.placement.arrays import Floats, Ints
from thalweg.placement.trees.cost import Flows, flows
from thalweg.placement.trees.model import Cargo, Forest, Nodes
from thalweg.placement.trees.view import View


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """One tree of a forest, and what its nodes do for other trees."""

    nodes: Nodes
    cargo: Cargo
    parent: Ints
    flow: Flows
    fan: np.ndarray
    other_busy: Floats
    other_rate: Floats
    other_below: Floats

    def at(self, node: int) -> tuple[View, np.ndarray]:
        """The view of a node, and which node each of its rows is."""
        parent = self.parent
        kids = np.flatnonzero(parent == node)
        grandkids = np.flatnonzero(np.isin(parent, kids))
        ids = np.concatenate(([node], kids, grandkids))
        row = np.full(len(parent), -1)
        row[ids] = np.arange(len(ids))
        above = row[parent[ids]]
        above[0] = -1
        flow, nodes = self.flow, self.nodes
        below = flow.weight - self.cargo.weight
        found = View(
            parent=above,
            weight=flow.weight[ids],
            below=np.where(flow.children > 0, below, 0.0)[ids],
            own=self.cargo.own[ids],
            demand=flow.demand[ids],
            fan=self.fan[ids],
            sends=flow.sends[ids],
            children=flow.children[ids].astype(np.int64),
            filter_s=nodes.filter_s[ids],
            send_s=nodes.send_s[ids],
            delay_s=nodes.delay_s[np.ix_(ids, ids)],
            other_busy=self.other_busy[ids],
            other_rate=self.other_rate[ids],
            other_below=self.other_below[ids],
            join=self.cargo.join,
            rates=self.cargo.rates,
        )
        return found, ids


def seen(nodes: Nodes, cargos: Sequence[Cargo], forest: Forest, tree: int = 0) -> Seen:
    all_flows = [flows(c, p) for c, p in zip(cargos, forest, strict=True)]
    busy, rate, below = np.zeros(len(nodes)), np.zeros(len(nodes)), np.zeros(len(nodes))
    for other, (cargo, flow) in enumerate(zip(cargos, all_flows, strict=True)):
        if other != tree:
            busy += nodes.filter_s * flow.checks + nodes.send_s * flow.sends
            rate += flow.rate
            below += np.where(flow.children > 0, flow.weight - cargo.weight, 0.0)
    flow, parent = all_flows[tree], forest[tree]
    fan = np.zeros(flow.demand.shape, np.int64)
    hung = np.flatnonzero(parent >= 0)
    np.add.at(fan, parent[hung], flow.demand[hung] != 0)
    return Seen(nodes, cargos[tree], parent, flow, fan, busy, rate, below)
