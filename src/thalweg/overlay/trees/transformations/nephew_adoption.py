"""Nephew adoption (rule 5): a grandchild moves from one child to another."""

from __future__ import annotations

from thalweg.overlay.trees.transformations.shape import Move, Rows, pairs_apart
from thalweg.placement.arrays import Floats
from thalweg.placement.trees.view import TOP, View


class NephewAdoption:
    name = "nephew adoption"

    def candidates(self, view: View) -> tuple[Rows, ...]:
        return pairs_apart(view)

    def delta(self, view: View, *columns: Rows) -> Floats:
        node, uncle = columns
        parent, delay, moved = view.parent[node], view.delay_s, view.as_is(node)
        left = view.changed(parent, lost=node)
        gained = view.changed(uncle, gained=moved)
        top = view.top([view.as_is(parent), view.as_is(uncle)], [left, gained])
        found: Floats = (
            top
            - view.cost[TOP]
            + left.own_cost
            - view.cost[parent]
            + gained.own_cost
            - view.cost[uncle]
            + moved.weight
            * (delay[TOP, uncle] + delay[uncle, node] - delay[TOP, parent] - delay[parent, node])
        )
        return found

    def moves(self, *rows: int) -> tuple[Move, ...]:
        return (Move(rows[0], rows[1]),)
