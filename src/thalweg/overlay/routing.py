"""What dissemination and gossip ask of an overlay, whichever it is (Chord, prefix routing).

Identifiers are 64 bits, made from addresses and keys by one hash, so that both overlays agree on
who is who.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

from thalweg.overlay.generator import stable_hash
from thalweg.overlay.protocol import Address

ID_BITS = 64
IDS = 1 << ID_BITS

Scope = int  # which nodes a message is for, in the overlay's own terms: a limit on the ring, a row
Part = tuple[Address, Scope]


@lru_cache(maxsize=1 << 16)  # every hop compares identifiers, and hashing is dear
def id_of(name: str) -> int:
    """Of an address or of a key."""
    return stable_hash(name)


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
