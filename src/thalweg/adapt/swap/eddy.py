"""The eddy of one node at one site: rows arrive, are numbered, and meet those that came before.

Two rows meet if the node has an edge between them and their intervals intersect; the later-numbered
one makes the pair. With more than two streams, the newest of all rows of a combination makes it:
it probes the SteMs of the others in an order that follows what probes have given so far, the one
with the fewest matches first. What is made holds all streams of the node and may leave it.

A row's end may come later, as a Closing. It ends all that was made of the row, too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush

import msgspec

from thalweg.adapt.swap.messages import Parts, Row
from thalweg.adapt.swap.query import FOREVER, SwapQuery
from thalweg.adapt.swap.stem import Stem, values_of
from thalweg.overlay.protocol import Address
from thalweg.placement.swap.distributed import SubQuery
from thalweg.placement.swap.join_graph import Edge

Origin = tuple[int, Address, int]  # of a row: its node (−1 − stream if fed), site, number or key

_Combined = tuple[tuple[int, ...], tuple[Row, ...], int, int]  # numbers, rows, interval

FADES = 0.98  # of what probes gave, at each batch


class MadeRow(msgspec.Struct, array_like=True):
    """What must be known to end it: of what it was made, and where it went."""

    number: int
    start: int
    end: int
    parents: tuple[int, ...]
    target: int
    addresses: tuple[Address, ...]


@dataclass(slots=True)
class Fanout:
    probes: float = 1.0
    matches: float = 1.0

    @property
    def mean(self) -> float:
        return self.matches / self.probes


@dataclass(slots=True)
class Eddy:
    query: SwapQuery
    node: int
    next_number: int = 1
    written_number: int = 1
    stems: dict[int, Stem] = field(default_factory=dict)
    origins: dict[Origin, int] = field(default_factory=dict)  # only where rows have open ends
    sent: dict[int, MadeRow] = field(default_factory=dict)  # likewise
    made_of: dict[int, dict[int, None]] = field(default_factory=dict)  # row -> what was made of it
    came: dict[int, tuple[int, Origin]] = field(default_factory=dict)  # row -> stream, origin
    pending: dict[int, deque[Row]] = field(default_factory=dict)  # made, without a next site yet
    parents: dict[int, tuple[int, ...]] = field(default_factory=dict)  # of pending rows
    saved: set[int] = field(default_factory=set)  # pending rows that are on disk
    new: dict[int, Row] = field(default_factory=dict)  # pending rows of this step
    probed: int = 0
    _ends: list[tuple[int, int]] = field(default_factory=list)
    _fanouts: dict[tuple[int, int], Fanout] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for stream in self.sub_query.streams:
            columns = {e.column(stream) for e in self.sub_query.edges if stream in e.streams}
            self.stems[stream] = Stem(stream, sorted(columns))

    @property
    def sub_query(self) -> SubQuery:
        return self.query.plan.djg.nodes[self.node]

    def number(self) -> int:
        given = self.next_number
        self.next_number += 1
        return given

    # --- rows that arrive ---

    def store(self, number: int, stream: int, row: Row, origin: Origin) -> None:
        self.stems[stream].put(number, row)
        self.came[number] = (stream, origin)
        if self.query.has_open_ends:
            self.origins[origin] = number
        self.expect_end(number, row.end)

    def expect_end(self, number: int, end: int) -> None:
        if end < FOREVER:
            heappush(self._ends, (end, number))

    def made_with(
        self, stream: int, number: int, row: Row
    ) -> Iterator[tuple[Row, tuple[int, ...]]]:
        """All combinations of this row and rows that came before it, each with its parents."""
        combined: list[_Combined] = [((number,), (row,), row.start, row.end)]
        for at, here, edge in self._order(stream):
            there = edge.other(here)
            stem, mine, yours = self.stems[there], edge.column(here), edge.column(there)
            longer: list[_Combined] = []
            for numbers, rows, start, end in combined:
                self.probed += 1
                value = values_of(rows[at].parts, here)[mine]
                for other, partner in stem.matches(yours, value).items():
                    later = partner.start if partner.start > start else start
                    sooner = partner.end if partner.end < end else end
                    if later < sooner:
                        longer.append(((*numbers, other), (*rows, partner), later, sooner))
            fanout = self._fanouts.setdefault((here, there), Fanout())
            fanout.probes += len(combined)
            fanout.matches += len(longer)
            combined = longer
            if not combined:
                return
        for numbers, rows, start, end in combined:
            parts = tuple(sorted([p for r in rows for p in r.parts]))
            if not self._meets_conditions(parts):
                continue
            footprint = 1 << self.node
            for r in rows:
                footprint |= r.footprint
            yield Row(self.number(), start, end, footprint, parts), numbers

    def _order(self, stream: int) -> list[tuple[int, int, Edge]]:
        """Edges to probe along: (which row so far, its stream, edge)."""
        edges: tuple[Edge, ...] = self.sub_query.edges
        if len(edges) == 1:
            return [(0, stream, edges[0])]
        joined, order = [stream], []
        while len(joined) <= len(edges):
            ways = [
                (at, here, e)
                for at, here in enumerate(joined)
                for e in edges
                if here in e.streams and e.other(here) not in joined
            ]
            way = min(ways, key=lambda w: self._expected(w[1], w[2].other(w[1])))
            order.append(way)
            joined.append(way[2].other(way[1]))
        return order

    def _expected(self, here: int, there: int) -> float:
        found = self._fanouts.get((here, there))
        return 1.0 if found is None else found.mean

    def fade(self) -> None:
        """What was long ago counts less."""
        for fanout in self._fanouts.values():
            fanout.probes *= FADES
            fanout.matches *= FADES

    def _meets_conditions(self, parts: Parts) -> bool:
        for condition in self.query.annotated.graph.conditions:
            held = dict(parts)
            if condition.left in held and condition.right in held:
                left = held[condition.left][condition.left_column]
                right = held[condition.right][condition.right_column]
                if left is None or left != right:
                    return False
        return True

    # --- rows that end, and rows that can go ---

    def wait(self, row: Row, parents: tuple[int, ...]) -> None:
        self.pending.setdefault(row.footprint, deque()).append(row)
        self.new[row.number] = row
        if self.query.has_open_ends:
            self.parents[row.number] = parents
            self._descend(row.number, parents)

    def _descend(self, number: int, parents: tuple[int, ...]) -> None:
        for parent in parents:
            self.made_of.setdefault(parent, {})[number] = None

    def drop_pending(self, row: Row) -> None:
        """It never was: a part of it ended before it began."""
        for parent in self.parents.pop(row.number, ()):
            self.made_of.get(parent, {}).pop(row.number, None)

    def remember_sent(self, made: MadeRow) -> None:
        self.sent[made.number] = made
        self._descend(made.number, made.parents)
        self.expect_end(made.number, made.end)

    def is_over(self, frontier: int) -> Iterator[int]:
        """Numbers of rows whose end the frontier has passed; they are handed out once."""
        while self._ends and self._ends[0][0] <= frontier:
            yield heappop(self._ends)[1]

    def forget(self, number: int) -> tuple[bool, bool]:
        """Whether it was stored, and whether it was remembered as sent."""
        stored = self.came.pop(number, None)
        if stored is not None:
            stream, origin = stored
            self.stems[stream].remove(number)
            self.origins.pop(origin, None)
            self.made_of.pop(number, None)
        made = self.sent.pop(number, None)
        if made is not None:
            for parent in made.parents:
                children = self.made_of.get(parent)
                if children is not None:
                    children.pop(number, None)
        return stored is not None, made is not None

    def stored(self, number: int) -> Row | None:
        known = self.came.get(number)
        return None if known is None else self.stems[known[0]].rows[number]
