"""Parent-child swap (rule 3): a child and a grandchild below it change places.

Each keeps its other children. The grandchild moves first: until it hangs at the top, its parent
can't hang below it without a circle.
"""

from __future__ import annotations

from thalweg.overlay.trees.transformations.shape import Move, Rows
from thalweg.placement.arrays import Floats
from thalweg.placement.trees.view import TOP, View


class ParentChildSwap:
    name = "parent-child swap"

    def candidates(self, view: View) -> tuple[Rows, ...]:
        return view.grandkids, view.parent[view.grandkids]

    def delta(self, view: View, *columns: Rows) -> Floats:
        node, parent = columns
        delay = view.delay_s
        lowered = view.changed(parent, lost=node)
        raised = view.changed(node, gained=lowered)
        top = view.top([view.as_is(parent)], [raised])
        found: Floats = (
            top
            - view.cost[TOP]
            + lowered.own_cost
            - view.cost[parent]
            + raised.own_cost
            - view.cost[node]
            + raised.weight * delay[TOP, node]
            + lowered.weight * delay[node, parent]
            - view.weight[parent] * delay[TOP, parent]
            - view.weight[node] * delay[parent, node]
        )
        return found

    def moves(self, *rows: int) -> tuple[Move, ...]:
        node, parent = rows
        return Move(node, TOP), Move(parent, node)
