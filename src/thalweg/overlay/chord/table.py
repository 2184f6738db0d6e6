"""What a node knows of the ring: the nodes after it, the one before it, and its fingers.

Positions are distances clockwise from the node itself, so that comparing two of them says which one
comes first. Fingers are the owners of n + 2^i; those that coincide are kept once.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable

from thalweg.overlay.protocol import Address
from thalweg.overlay.ring import distance
from thalweg.overlay.routing import ID_BITS, IDS, id_of

NEARER_AT_ONCE = 3  # alternatives in one answer, so that one dead node does not end a search


class Table:
    __slots__ = (
        "_first",
        "_known",
        "_known_fingers",
        "_known_successors",
        "_positions",
        "address",
        "fingers",
        "most_successors",
        "own_id",
        "predecessor",
        "successors",
    )

    def __init__(self, address: Address, most_successors: int) -> None:
        self.address = address
        self.own_id = id_of(address)
        self.most_successors = most_successors
        self.successors: tuple[Address, ...] = ()  # empty: alone
        self.predecessor: Address | None = None
        self.fingers: dict[int, Address] = {}  # i -> owner of own_id + 2^i
        # A cache: successors and fingers, and their positions. Both are replaced where they change,
        # never changed in place.
        self._first = IDS  # where the first successor is
        self._known: list[Address] = []
        self._positions = array("Q")  # in one place: with many nodes, memory is what takes time
        self._known_successors: object = None  # those that the cache was made from
        self._known_fingers: object = None

    def position(self, address: Address) -> int:
        """How far clockwise it is; this node itself is once round."""
        return (id_of(address) - self.own_id) % IDS or IDS

    def is_nearer_successor(self, address: Address) -> bool:
        """Whether it lies between this node and its successor."""
        if address == self.address:
            return False
        return self.position(address) < self._first_position()

    def is_nearer_predecessor(self, address: Address) -> bool:
        if address == self.address:
            return False
        known = self.predecessor
        return known is None or self.position(address) > self.position(known)

    def follow(self, addresses: Iterable[Address]) -> None:
        """Make the nearest of these the successors; this node and doubles don't count."""
        found = dict.fromkeys(a for a in addresses if a != self.address)
        nearest = tuple(sorted(found, key=self.position)[: self.most_successors])
        if nearest != self.successors:
            self.successors = nearest

    def drop(self, address: Address) -> None:
        """Forget a node that is gone."""
        self.successors = tuple(a for a in self.successors if a != address)
        if self.predecessor == address:
            self.predecessor = None
        self.fingers = {i: a for i, a in self.fingers.items() if a != address}

    # --- routing ---

    def owns(self, key: int) -> bool:
        """Whether the key lies between the node before this one and this one."""
        before = self.before
        return before is None or self._key_position(key) > self.position(before)

    @property
    def before(self) -> Address | None:
        """Who comes before this node, as far as known: keys after it are this node's."""
        return self.predecessor or self._last_known()

    def owners(self, key: int) -> tuple[Address, ...]:
        """The key's owner and those after it, if the owner is this node's successor (or nobody)."""
        if not self.successors:
            return (self.address,)
        if self._key_position(key) <= self._first_position():
            return self.successors
        return ()

    def nearer(self, key: int, is_down: Callable[[Address], bool]) -> tuple[Address, ...]:
        """Known nodes before the key, the nearest to it first."""
        known = self._by_position()
        before = bisect_left(self._positions, self._key_position(key))
        found = []
        for address in reversed(known[:before]):
            if not is_down(address):
                found.append(address)
                if len(found) == NEARER_AT_ONCE:
                    break
        return tuple(found)

    def routes(self) -> list[Address]:
        """The successor and the fingers, each once, in ring order."""
        found = dict.fromkeys((*self.successors[:1], *self.fingers.values()))
        return sorted(found, key=self.position)

    def _key_position(self, key: int) -> int:
        return distance(self.own_id, key) or IDS

    def _last_known(self) -> Address | None:
        known = self._by_position()
        return known[-1] if known else None

    def _first_position(self) -> int:
        """Of the first successor."""
        self._by_position()
        return self._first

    def _by_position(self) -> list[Address]:
        """Successors and fingers, each once, in ring order."""
        if self._known_successors is not self.successors or self._known_fingers is not self.fingers:
            addresses = dict.fromkeys((*self.successors, *self.fingers.values()))
            by_position = sorted((self.position(a), a) for a in addresses)
            self._positions = array("Q", [position for position, _ in by_position])
            self._known = [address for _, address in by_position]
            self._first = self.position(self.successors[0]) if self.successors else IDS
            self._known_successors, self._known_fingers = self.successors, self.fingers
        return self._known

    # --- fingers ---

    def finger_after(self, index: int) -> int:
        """The next finger worth a search: those up to the successor are the successor."""
        first = self.position(self.successors[0]).bit_length() if self.successors else ID_BITS
        return max(index, first)

    def finger_key(self, index: int) -> int:
        return (self.own_id + (1 << index)) % IDS

    def set_finger(self, index: int, owner: Address) -> int:
        """Note it down; gives the first index beyond those that have the same owner."""
        reach = ID_BITS if owner == self.address else self.position(owner).bit_length()
        beyond = max(index + 1, min(reach, ID_BITS))
        first = self.finger_after(0)
        kept = {i: a for i, a in self.fingers.items() if first <= i and not index <= i < beyond}
        if owner != self.address:
            kept[index] = owner
        if kept != self.fingers:
            self.fingers = kept
        return beyond
