"""Which of a parallel node's sites has a value: they divide the 64 bits of its hash evenly."""

from __future__ import annotations

from thalweg.adapt.swap.query import Value
from thalweg.overlay.p2p.tuples import hash_of
from thalweg.overlay.protocol import Address

HASH_BITS = 64


def site_of(value: Value, sites: tuple[Address, ...]) -> Address:
    """NULL joins nothing: any site will do."""
    return sites[0] if value is None else sites[hash_of(value) * len(sites) >> HASH_BITS]
