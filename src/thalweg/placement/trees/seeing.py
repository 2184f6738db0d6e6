"""The view that each node of a forest has when all that it is told is right."""

from __future__ import annotations

from typing import Any

import numpy as np

from thalweg.placement.trees.ledger import Ledger
from thalweg.placement.trees.model import Cargo, Nodes
from thalweg.placement.trees.view import View


def view_of(
    ledger: Ledger, nodes: Nodes, cargo: Cargo, tree: int, node: int
) -> tuple[View, np.ndarray]:
    """What a node sees of one tree, and which node each of its rows is."""
    children, places = ledger.children[tree], ledger.places[tree]
    kids = children[node]
    ids, above = [node, *kids], [-1] + [0] * len(kids)
    for row, kid in enumerate(kids, 1):
        ids += children[kid]
        above += [row] * len(children[kid])
    seen = [places[i] for i in ids]
    rows = np.array(ids)
    busy = np.array([p.busy for p in seen])
    rate = np.array([p.rate for p in seen])
    below = np.array([p.below for p in seen])
    shape = (len(ids), cargo.own.shape[1])

    def table(values: list[Any], kind: Any) -> np.ndarray:
        return np.array(values, kind).reshape(shape)

    found = View(
        parent=np.array(above),
        weight=np.array([p.weight for p in seen]),
        below=below,
        own=cargo.own[rows],
        demand=table([p.demand for p in seen], cargo.own.dtype),
        fan=table([p.fan for p in seen], np.int64),
        sends=np.array([p.sends for p in seen]),
        children=np.array([len(children[i]) for i in ids]),
        filter_s=nodes.filter_s[rows],
        send_s=nodes.send_s[rows],
        delay_s=nodes.delay_s[np.ix_(rows, rows)],
        other_busy=np.array([ledger.busy[i] for i in ids]) - busy,
        other_rate=np.array([ledger.rate[i] for i in ids]) - rate,
        other_below=np.array([ledger.below[i] for i in ids]) - below,
        join=cargo.join,
        rates=cargo.rates,
    )
    return found, rows
