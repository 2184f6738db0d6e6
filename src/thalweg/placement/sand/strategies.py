"""SAND's strategies, by name."""

from __future__ import annotations

from thalweg.placement.sand.edge import edge
from thalweg.placement.sand.edge_plus import edge_plus
from thalweg.placement.sand.in_network import in_network
from thalweg.placement.sand.optimal import optimal
from thalweg.placement.sand.placing import at_proxy, place
from thalweg.placement.sand.planning import tree_strategy
from thalweg.placement.strategy import Strategy

PROXY = tree_strategy(
    "proxy",
    "every stream straight to the query's proxy, everything runs there",
    lambda tree, ways, options: at_proxy(tree, ways),
)
EDGE = tree_strategy(
    "edge",
    "operators at sources or at the proxy, whatever the distances",
    lambda tree, ways, options: place(tree, ways, edge),
)
EDGE_PLUS = tree_strategy(
    "edge+",
    "operators at sources or at the proxy, by rate and distance",
    lambda tree, ways, options: place(tree, ways, edge_plus),
)
IN_NETWORK = tree_strategy(
    "in-network",
    "as edge+, and at hosts in between (as many as the work limit says)",
    lambda tree, ways, options: place(tree, ways, in_network(options.work_limit)),
)
OPTIMAL = tree_strategy(
    "optimal",
    "each query's cheapest placement of all, by rate and distance",
    lambda tree, ways, options: optimal(tree, ways),
)

SAND: tuple[Strategy, ...] = (PROXY, EDGE, EDGE_PLUS, IN_NETWORK, OPTIMAL)
