"""Which site joins on which edge, where nobody has said it (COSMOS 5.3 takes it as given).

An edge is joined where one of its streams is, so that only the other one travels. Of the two it is
the one with fewer edges: a stream in the middle then has rows for several sites, which choose an
order (figure 5.4). Between equals, it is the faster one: the fewer rows travel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from thalweg.placement.swap.join_graph import Edge, JoinGraph, Site


def assigned(graph: JoinGraph, homes: Sequence[Site], rates: Mapping[int, float]) -> list[Site]:
    """By edge; `homes` and `rates` are those of the streams."""
    degree = [sum(s in e.streams for e in graph.edges) for s in range(len(homes))]

    def site(edge: Edge) -> Site:
        chosen = min(edge.streams, key=lambda s: (degree[s], -rates.get(s, 0.0), s))
        return homes[chosen]

    return [site(edge) for edge in graph.edges]
