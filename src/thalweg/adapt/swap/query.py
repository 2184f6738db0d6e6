"""A join as SwAP's sites know it: streams with windows, where they are, and what is selected."""

from __future__ import annotations

from functools import cached_property

import msgspec

from thalweg.overlay.protocol import Address
from thalweg.placement.swap.join_graph import AnnotatedJoinGraph, JoinGraphError
from thalweg.placement.swap.links import Link, SwapPlan, set_up

Value = int | float | str | bool | None
Values = tuple[Value, ...]
FOREVER = 1 << 62  # the end of a row whose end is not known
NEVER = -FOREVER  # before all instants


class SwapQuery(msgspec.Struct, frozen=True, dict=True):
    """Sites are addresses of nodes. `windows` are lengths in instants, by stream; None where rows
    last until a `-` ends them. Results begin at instant `first`, with all that holds then.
    `sources` say, by stream, what its home feeds it from: the driver's affair."""

    id: str
    annotated: AnnotatedJoinGraph
    windows: tuple[int | None, ...]
    outputs: tuple[tuple[int, int], ...]  # (stream, column)
    sink: Address  # where results go
    first: int = NEVER
    sources: tuple[str, ...] = ()
    routing: str = ""  # `policies/named.py`; empty: as the site's settings say

    def __post_init__(self) -> None:
        if "/" in self.id:
            raise JoinGraphError(f"{self.id!r}: a query's id has no slash")
        if len(self.windows) != len(self.annotated.graph.streams):
            raise JoinGraphError("each stream of a join has a window, or None")
        if any(w is not None and w < 0 for w in self.windows):
            raise JoinGraphError("a window's length can't be negative")

    @cached_property
    def plan(self) -> SwapPlan:
        return set_up(self.annotated)

    @cached_property
    def sites(self) -> tuple[Address, ...]:
        """All that take part, but for the sink."""
        nodes = self.plan.djg.nodes
        return tuple(dict.fromkeys(site for node in nodes for site in node.sites))

    @cached_property
    def has_open_ends(self) -> bool:
        return None in self.windows

    def end(self, stream: int, start: int) -> int:
        window = self.windows[stream]
        return FOREVER if window is None else start + window + 1

    def row(self, parts: tuple[tuple[int, Values], ...]) -> Values:
        """What is selected of a whole combination, which has its streams in order."""
        return tuple([parts[stream][1][column] for stream, column in self.outputs])

    @cached_property
    def _ways(self) -> dict[tuple[int, int], tuple[Link, ...]]:
        return {}

    def ways(self, node: int, footprint: int) -> tuple[Link, ...]:
        found = self._ways.get((node, footprint))
        if found is None:
            found = self._ways[node, footprint] = self.plan.open_to(node, footprint)
        return found
