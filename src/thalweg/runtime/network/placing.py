"""Where a query runs as a whole: at the node that was asked, or where most of its input is.

What a query reads of other nodes travels to it, and its result to who asks. The other strategies
are planners of `placement`, which `deploying.py` asks and carries out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum

from thalweg.plan.catalog import QueryDef
from thalweg.plan.shapes import shape_of
from thalweg.runtime.network.directory import FED, Defined

Place = Callable[[QueryDef], str]  # the node that runs a query


class Strategy(StrEnum):
    local = "local"  # at the node that was asked: results are read there
    home = "home"  # where most tuples come in: only the rest of the input travels
    sqpr = "sqpr"  # operators where there is room, with reuse; a query that does not fit is refused
    in_network = "in-network"  # operators on the way from their streams to the node that was asked
    edge = "edge"  # operators at streams' homes, or at the node that was asked
    edge_plus = "edge+"
    cosmos = "cosmos"  # whole queries near their like and their streams

    @property
    def is_planned(self) -> bool:
        return self not in (Strategy.local, Strategy.home)


def placed_locally(me: str) -> Place:
    return lambda _: me


def placed_at_home(me: str, defined: Mapping[str, Defined], arrived: Mapping[str, int]) -> Place:
    """`arrived` tells of each stream, by lower-cased name, how many tuples have come so far; one
    that it does not have is at a node that does not answer."""

    def place(query: QueryDef) -> str:
        weights: dict[str, int] = {me: 0}
        for stream in shape_of(query).streams:
            entry = defined.get(stream.name.lower())
            home = me if entry is None or entry.kind not in FED else entry.node
            if entry is not None and stream.name.lower() not in arrived:
                continue
            weights[home] = weights.get(home, 0) + 1 + arrived.get(stream.name.lower(), 0)
        # Who was asked, where that makes no difference.
        return max(weights, key=lambda node: (weights[node], node == me, node))

    return place
