"""What spreading and gossip ask of an overlay, whichever it is (Chord, prefix routing).

Identifiers are 64 bits, made from addresses and keys by one hash, so that both overlays agree on
who is who.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from thalweg.overlay.generator import stable_hash
from thalweg.overlay.protocol import Address

ID_BITS = 64
IDS = 1 << ID_BITS

Scope = int  # which nodes a message is for, in the overlay's own terms: a limit on the ring, a row
Part = tuple[Address, Scope]


# Every hop compares identifiers, and hashing is dear. (A cache that keeps track of use would touch
# five entries at each look.)
_IDS: dict[str, int] = {}
_MOST_IDS = 1 << 16


def id_of(name: str) -> int:
    """Of an address or of a key."""
    found = _IDS.get(name)
    if found is None:
        if len(_IDS) >= _MOST_IDS:
            _IDS.clear()
        found = _IDS[name] = stable_hash(name)
    return found


class Routing(Protocol):
    """Read by the protocols above it in the same node."""

    def next_hop(self, key: int) -> Address | None:
        """Where a message for `key` goes from here; None if this node is the key's own."""

    def neighbours(self) -> Sequence[Address]:
        """The nodes of the routing table, each once: whom to gossip with."""

    def parts(self, scope: Scope | None) -> list[Part]:
        """A scope (None: all nodes) without this node, cut into parts, each with its first node.

        Where the routing tables are right, every node of the scope is in exactly one part, and
        repeated cutting ends after O(log n) steps.
        """

    def covers(self, wide: Scope | None, narrow: Scope) -> bool:
        """Whether all of this node's parts of `narrow` are among those of `wide`."""
