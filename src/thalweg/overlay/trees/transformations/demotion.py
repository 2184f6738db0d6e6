"""Node demotion (rule 2): a child becomes the child of one of its siblings."""

from __future__ import annotations

import numpy as np

from thalweg.overlay.trees.transformations.shape import Move, Rows
from thalweg.placement.arrays import Floats
from thalweg.placement.trees.view import TOP, View


class Demotion:
    name = "demotion"

    def candidates(self, view: View) -> tuple[Rows, ...]:
        node, sibling = np.repeat(view.kids, len(view.kids)), np.tile(view.kids, len(view.kids))
        return node[node != sibling], sibling[node != sibling]

    def delta(self, view: View, *columns: Rows) -> Floats:
        node, sibling = columns
        delay, moved = view.delay_s, view.as_is(node)
        gained = view.changed(sibling, gained=moved)
        top = view.top([moved, view.as_is(sibling)], [gained])
        found: Floats = (
            top
            - view.cost[TOP]
            + gained.own_cost
            - view.cost[sibling]
            + moved.weight * (delay[TOP, sibling] + delay[sibling, node] - delay[TOP, node])
        )
        return found

    def moves(self, *rows: int) -> tuple[Move, ...]:
        return (Move(rows[0], rows[1]),)
