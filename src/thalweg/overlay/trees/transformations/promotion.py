"""Node promotion (rule 1): a grandchild becomes a child."""

from __future__ import annotations

from thalweg.overlay.trees.transformations.shape import Move, Rows
from thalweg.placement.arrays import Floats
from thalweg.placement.trees.view import TOP, View


class Promotion:
    name = "promotion"

    def candidates(self, view: View) -> tuple[Rows, ...]:
        return (view.grandkids,)

    def delta(self, view: View, *columns: Rows) -> Floats:
        (node,) = columns
        parent, delay, moved = view.parent[node], view.delay_s, view.as_is(node)
        left = view.changed(parent, lost=node)
        top = view.top([view.as_is(parent)], [left, moved])
        found: Floats = (
            top
            - view.cost[TOP]
            + left.own_cost
            - view.cost[parent]
            + moved.weight * (delay[TOP, node] - delay[parent, node] - delay[TOP, parent])
        )
        return found

    def moves(self, *rows: int) -> tuple[Move, ...]:
        return (Move(rows[0], TOP),)
