"""Cousin swap (rule 4): two grandchildren of different parents change places."""

from __future__ import annotations

import numpy as np

from thalweg.overlay.trees.transformations.shape import Move, Rows
from thalweg.placement.arrays import Floats
from thalweg.placement.trees.view import TOP, View


class CousinSwap:
    name = "cousin swap"

    def candidates(self, view: View) -> tuple[Rows, ...]:
        one, other = np.triu_indices(len(view.grandkids), 1)
        node, cousin = view.grandkids[one], view.grandkids[other]
        apart = view.parent[node] != view.parent[cousin]
        node, cousin = node[apart], cousin[apart]
        return node, cousin, view.parent[node], view.parent[cousin]

    def delta(self, view: View, *columns: Rows) -> Floats:
        node, cousin, parent, uncle = columns
        delay, one, other = view.delay_s, view.as_is(node), view.as_is(cousin)
        here = view.changed(parent, lost=node, gained=other)
        there = view.changed(uncle, lost=cousin, gained=one)
        top = view.top([view.as_is(parent), view.as_is(uncle)], [here, there])
        found: Floats = (
            top
            - view.cost[TOP]
            + here.own_cost
            - view.cost[parent]
            + there.own_cost
            - view.cost[uncle]
            + one.weight * (delay[uncle, node] - delay[parent, node])
            + other.weight * (delay[parent, cousin] - delay[uncle, cousin])
            + (here.weight - view.weight[parent]) * delay[TOP, parent]
            + (there.weight - view.weight[uncle]) * delay[TOP, uncle]
        )
        return found

    def moves(self, *rows: int) -> tuple[Move, ...]:
        node, cousin, parent, uncle = rows
        return Move(node, uncle), Move(cousin, parent)
