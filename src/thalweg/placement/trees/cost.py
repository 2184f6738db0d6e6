"""What trees cost: the loss of fidelity that delays cause (COSMOS 4.2.1 and 4.3.1).

A row that goes through node k waits there, is checked and sent:

- `waiting_s`: ρ/(1 − ρ)·t, with ρ the share of time that k is busy for *all* its trees, and t the
  mean time it spends on a row that it has to pass on. ρ ≥ 1 is infinitely bad.
- `serving_s`: (1 − 1/|C|)·t/2 + t^p + t^c, with t of this tree's rows. Both together are (4.5) for
  one object, and (4.11) for many in one tree.

A node's loss is its weight times all delays on its way (4.6, 4.12). So the sum over all nodes is
Σ W_c·d(p, c) over edges plus Σ B_k·g(k), where W is the weight of a subtree and B that of what is
below a node. Only rows that somebody below wants count towards t: others cause no work.

`loss` computes everything anew, plainly; what is incremental is tested against it. The adaptation
cost (4.7) is a share of the node's time, not a delay: here it adds to ρ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from thalweg.placement.arrays import Floats, Ints
from thalweg.placement.trees.model import Cargo, Demands, Forest, Nodes, depths

Counts = npt.NDArray[np.integer]

OVERLOADED_S = 1e6  # what searching takes for the wait at a node of ρ ≥ 1, times its ρ


def waiting_s(busy: Any, rate: Any, *, graded: bool = False) -> Any:
    """In the queue. `graded` is for a search: among infinitely bad trees, less load is better."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = busy * busy / ((1 - busy) * rate)
    found = np.where(np.asarray(rate) > 0, found, 0.0)
    return np.where(np.asarray(busy) < 1, found, OVERLOADED_S * busy if graded else np.inf)


def serving_s(filter_s: Any, send_s: Any, busy: Any, rate: Any, children: Any) -> Any:
    """Of a row on its way to a child, the children being served in random order."""
    with np.errstate(divide="ignore", invalid="ignore"):
        others = np.where(np.asarray(rate) > 0, busy / rate * (1 - 1 / children) / 2, 0.0)
    return np.where(np.asarray(children) > 0, others + filter_s + send_s, 0.0)


@dataclass(frozen=True, slots=True)
class AdaptationCost:
    """(4.7), with the source's settings."""

    collect_s: float = 1e-6  # t^e, for one node's information about one object
    decide_s: float = 1e-6  # t^d, for one possible decision about one object
    collect_every_s: float = 50.0
    decide_every_s: float = 200.0

    def busy(
        self, children: Counts, grandchildren: Counts, squares: Counts, objects: Any
    ) -> Floats:
        """Share of a node's time; `squares` is the sum of its children's squared fanouts."""
        c, g = children.astype(float), grandchildren.astype(float)
        decisions = g + c * c + (g * g - squares) + 2 * g * (c - 1)
        known = c + g
        found: Floats = objects * (
            self.collect_s / self.collect_every_s * known
            + self.decide_s / self.decide_every_s * np.maximum(0, decisions)
        )
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Flows:
    """What passes through each node of one tree."""

    demand: Demands  # of a node and all below it
    weight: Floats  # W
    sends: Floats  # rows sent to children, a second
    checks: Floats  # rows checked for children, a second
    rate: Floats  # rows that some child may want, a second
    children: Ints


def flows(cargo: Cargo, parent: Ints) -> Flows:
    """From the leaves up."""
    count = len(parent)
    depth = depths(parent, cargo.members)
    demand, weight = cargo.own.copy(), cargo.weight.astype(float)
    below = [i for i in np.argsort(-depth, kind="stable") if depth[i] > 0]
    for i in below:
        p = parent[i]
        demand[p] = cargo.join(demand[p], demand[i])
        weight[p] += weight[i]
    rates = cargo.rates(demand)
    sends, children = np.zeros(count), np.zeros(count, np.int32)
    fan = np.zeros(demand.shape, np.int32)  # children that want an object
    for i in below:
        p = parent[i]
        sends[p] += rates[i].sum()
        fan[p] += demand[i] != 0
        children[p] += 1
    checks, rate = (rates * fan).sum(axis=1), (rates * (fan > 0)).sum(axis=1)
    return Flows(demand, weight, sends, checks, rate, children)


def loads(nodes: Nodes, all_flows: Sequence[Flows]) -> tuple[list[Floats], Floats, Floats]:
    """ρ of each tree at each node, and of all; rows to be passed on, of all."""
    each = [nodes.filter_s * f.checks + nodes.send_s * f.sends for f in all_flows]
    rate = np.sum([f.rate for f in all_flows], axis=0)
    return each, np.sum(each, axis=0), rate


def loss(
    nodes: Nodes,
    cargos: Sequence[Cargo],
    forest: Forest,
    adaptation: AdaptationCost | None = None,
) -> float:
    """AvgLF: the mean loss of fidelity over all nodes but the home; infinite where ρ ≥ 1."""
    return float(losses(nodes, cargos, forest, adaptation).sum()) / max(1, len(nodes) - 1)


def losses(
    nodes: Nodes,
    cargos: Sequence[Cargo],
    forest: Forest,
    adaptation: AdaptationCost | None = None,
) -> Floats:
    """LF of each node: (4.6), (4.12)."""
    all_flows = [flows(c, p) for c, p in zip(cargos, forest, strict=True)]
    each, busy, rate = loads(nodes, all_flows)
    if adaptation is not None:
        for cargo, parent in zip(cargos, forest, strict=True):
            busy = busy + _adapting(cargo, parent, adaptation)
    waits = waiting_s(busy, rate)
    found = np.zeros(len(nodes))
    for cargo, parent, flow, own_busy in zip(cargos, forest, all_flows, each, strict=True):
        serves = serving_s(nodes.filter_s, nodes.send_s, own_busy, flow.rate, flow.children)
        g = np.where(flow.children > 0, waits + serves, 0.0)
        depth = depths(parent, cargo.members)
        delay = np.zeros(len(nodes))
        for i in np.argsort(depth, kind="stable"):
            if depth[i] > 0:
                p = parent[i]
                delay[i] = delay[p] + g[p] + nodes.delay_s[p, i]
        wanted = cargo.weight > 0
        found[wanted] += (cargo.weight * delay)[wanted]
    return found


def _adapting(cargo: Cargo, parent: Ints, adaptation: AdaptationCost) -> Floats:
    fanout = np.bincount(parent[parent >= 0], minlength=len(parent))
    grand, squares = np.zeros_like(fanout), np.zeros_like(fanout)
    hung = np.flatnonzero(parent >= 0)
    np.add.at(grand, parent[hung], fanout[hung])
    np.add.at(squares, parent[hung], fanout[hung] ** 2)
    objects = (flows(cargo, parent).demand != 0).sum(axis=1)
    return adaptation.busy(fanout, grand, squares, objects)
