"""Who decides where queries run, by name. Light: every command knows these."""

from __future__ import annotations

from enum import StrEnum


class PlanningBy(StrEnum):
    """Who decides where a strategy puts queries."""

    node = "node"  # the one that was asked, over measurements of all
    protocol = "protocol"  # nodes together, by messages; sqpr still plans at one node


class Strategy(StrEnum):
    local = "local"  # at the node that was asked: results are read there
    home = "home"  # where most tuples come in: only the rest of the input travels
    sqpr = "sqpr"  # operators where there is room, with reuse; a query that does not fit is refused
    in_network = "in-network"  # operators on the way from their streams to the node that was asked
    edge = "edge"  # operators at streams' homes, or at the node that was asked
    edge_plus = "edge+"
    fragments = "fragments"  # a fragment for each stream at its home, joins with the faster side
    cosmos = "cosmos"  # whole queries near their like and their streams

    @property
    def is_planned(self) -> bool:
        return self not in (Strategy.local, Strategy.home)
