"""DiTA, centralised: the most demanding first, each at the nearest node with room (COSMOS 4.4.1).

The peer of the source's evaluation, after Shah, Ramamritham and Shenoy: a node serves others whose
requirements are no stricter than its own, and not more of them than its fanout allows. Nodes are
added in the order of their requirements; here, of their rates. Whoever is in the tree already is
then strict enough. The source first says that the level counts before the delay, then chooses by
delay alone; both are built, and the better one counts. The fanout is found by trial, as the source
does: that of the least loss, one for all nodes (the home is a node like others).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from thalweg.placement.arrays import NONE, Ints, ints
from thalweg.placement.trees.cost import loss
from thalweg.placement.trees.model import HOME, Cargo, Forest, Nodes

FANOUTS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128)


class DiTA:
    name = "DiTA"
    about = "the strictest requirements first, at the nearest node with room; fanout by trial"

    def __init__(self, fanouts: Sequence[int] = FANOUTS) -> None:
        self._fanouts = fanouts

    def build(self, nodes: Nodes, cargos: Sequence[Cargo], seed: int = 0) -> Forest:
        best, least = None, np.inf
        for fanout in self._fanouts:
            for by_level in (False, True):
                found = tuple(_added(nodes, c, fanout, by_level) for c in cargos)
                cost = loss(nodes, cargos, found)
                if best is None or cost < least:
                    best, least = found, cost
        assert best is not None
        return best


def _added(nodes: Nodes, cargo: Cargo, fanout: int, by_level: bool) -> Ints:
    rate = cargo.rates(cargo.own).sum(axis=1)
    joining = [i for i in np.argsort(-rate, kind="stable") if cargo.members[i] and i != HOME]
    parent, level = np.full(len(nodes), NONE), np.zeros(len(nodes))
    room = np.zeros(len(nodes), np.int64)
    room[HOME] = fanout
    for i in joining:
        delay = np.where(room > 0, nodes.delay_s[:, i], np.inf)
        if by_level:
            delay = np.where(level == level[room > 0].min(), delay, np.inf)
        at = int(delay.argmin())
        parent[i], level[i] = at, level[at] + 1
        room[at] -= 1
        room[i] = fanout
    return ints(parent)
