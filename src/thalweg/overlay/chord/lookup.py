"""One search for a key's owner: ask a node, get nodes nearer to the key, ask the nearest of those.

The searcher asks every node itself. That takes a message more per hop than handing the search on,
and gives it a way round nodes that don't answer.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from heapq import heappop, heappush

from thalweg.overlay.protocol import Address
from thalweg.overlay.ring import distance
from thalweg.overlay.routing import IDS, id_of


class Search:
    __slots__ = ("_known", "_to_ask", "attempts_left", "hops", "key", "tag")

    def __init__(self, key: int, tag: Hashable, attempts_left: int = 1) -> None:
        self.key = key
        self.tag = tag  # whose search it is
        self.attempts_left = attempts_left  # with this one
        self.hops = 0
        self._known: dict[Address, int] = {}  # -> how far the key is from there
        self._to_ask: list[tuple[int, Address]] = []  # a heap: the nearest to the key first

    def learn(self, addresses: Iterable[Address], nearer_than: int = IDS + 1) -> None:
        for address in addresses:
            if address not in self._known:
                away = distance(id_of(address), self.key) or IDS
                if away < nearer_than:
                    self._known[address] = away
                    heappush(self._to_ask, (away, address))

    def next(self, myself: Address) -> Address | None:
        """The nearest that was not asked yet."""
        while self._to_ask:
            _, nearest = heappop(self._to_ask)
            if nearest != myself:
                return nearest
        return None

    def answered(self, by: Address, nearer: Iterable[Address]) -> None:
        """Only what is nearer than who says so: a search never goes in circles."""
        self.hops += 1
        self.learn(nearer, self._known[by])
