"""The same core with the leaves of one stream exchanged: self-joins match in any order."""

from __future__ import annotations

from collections.abc import Iterator

from thalweg.sharing.block import Leaf
from thalweg.sharing.core import Core, Residual
from thalweg.sharing.rules.order_leaves import Order, column_places, leaf_orders, moved


def reorderings(core: Core) -> Iterator[Core]:
    """The core as it stands, then its others."""
    yield core
    leaves = tuple(map(Leaf, core.streams, core.windows))
    as_it_stands = tuple(range(len(leaves)))
    for order in leaf_orders(leaves):
        if order != as_it_stands:
            yield _reordered(core, leaves, order)


def _reordered(core: Core, leaves: tuple[Leaf, ...], order: Order) -> Core:
    places = column_places(leaves, order)

    def template_moved(residual: Residual) -> Residual:
        parameters = range(residual.width, residual.width + len(residual.constants))
        template = moved(residual.template, [*places, *parameters])
        return Residual(template, residual.width, residual.constants, residual.types)

    return Core(
        tuple(leaves[i].stream for i in order),
        tuple(leaves[i].window for i in order),
        tuple(moved(j, places) for j in core.joins),
        tuple((moved(e, places), values) for e, values in core.ranges),
        tuple(map(template_moved, core.residuals)),
        tuple(moved(e, places) for e in core.outputs),
    )
