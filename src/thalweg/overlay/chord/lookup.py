"""One search for a key's owner: ask a node, get nodes nearer to the key, ask the nearest of those.

The searcher asks every node itself. That takes a message more per hop than handing the search on,
and gives it a way round nodes that don't answer.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from thalweg.overlay.protocol import Address
from thalweg.overlay.ring import distance
from thalweg.overlay.routing import IDS, id_of


class Search:
    __slots__ = ("_asked", "_known", "attempts_left", "hops", "key", "tag")

    def __init__(self, key: int, tag: Hashable, attempts_left: int = 1) -> None:
        self.key = key
        self.tag = tag  # whose search it is
        self.attempts_left = attempts_left  # with this one
        self.hops = 0
        self._known: dict[Address, int] = {}  # -> how far the key is from there
        self._asked: set[Address] = set()

    def learn(self, addresses: Iterable[Address]) -> None:
        for address in addresses:
            if address not in self._known:
                self._known[address] = distance(id_of(address), self.key) or IDS

    def next(self, myself: Address) -> Address | None:
        """The nearest that was not asked yet."""
        rest = [a for a in self._known if a not in self._asked and a != myself]
        if not rest:
            return None
        nearest = min(rest, key=self._known.__getitem__)
        self._asked.add(nearest)
        return nearest

    def answered(self, by: Address, nearer: Iterable[Address]) -> None:
        """Only what is nearer than who says so: a search never goes in circles."""
        self.hops += 1
        bound = self._known[by]
        closer = [a for a in nearer if (distance(id_of(a), self.key) or IDS) < bound]
        self.learn(closer)
