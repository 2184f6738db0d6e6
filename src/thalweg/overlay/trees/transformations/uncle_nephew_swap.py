"""Uncle-nephew swap (rule 6): a child and a grandchild below another child change places."""

from __future__ import annotations

from thalweg.overlay.trees.transformations.shape import Move, Rows, pairs_apart
from thalweg.placement.arrays import Floats
from thalweg.placement.trees.view import TOP, View


class UncleNephewSwap:
    name = "uncle-nephew swap"

    def candidates(self, view: View) -> tuple[Rows, ...]:
        nephew, uncle = pairs_apart(view)
        return nephew, uncle, view.parent[nephew]

    def delta(self, view: View, *columns: Rows) -> Floats:
        nephew, uncle, parent = columns
        delay, raised, lowered = view.delay_s, view.as_is(nephew), view.as_is(uncle)
        here = view.changed(parent, lost=nephew, gained=lowered)
        top = view.top([view.as_is(parent), lowered], [here, raised])
        found: Floats = (
            top
            - view.cost[TOP]
            + here.own_cost
            - view.cost[parent]
            + raised.weight * (delay[TOP, nephew] - delay[parent, nephew])
            + lowered.weight * (delay[parent, uncle] - delay[TOP, uncle])
            + (here.weight - view.weight[parent]) * delay[TOP, parent]
        )
        return found

    def moves(self, *rows: int) -> tuple[Move, ...]:
        nephew, uncle, parent = rows
        return Move(nephew, TOP), Move(uncle, parent)
