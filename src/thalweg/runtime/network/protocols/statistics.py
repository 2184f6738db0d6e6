"""What coordinators have to know of a node (COSMOS 3.3.8): rates of streams, loads of queries."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from thalweg.runtime.data.fragments import digest_of, is_fragment
from thalweg.runtime.network.protocols.coordinators import LiveCoordinators

if TYPE_CHECKING:
    from thalweg.runtime.network.node import Node

_WEIGH_EVERY_S = 1.0
_LEAST_LOAD = 1e-9  # of a core: what idles now may have work again
_SMOOTHING = 0.5


class Statistics:
    def __init__(self, node: Node, coordinators: LiveCoordinators) -> None:
        self._node, self._coordinators = node, coordinators
        self._loads: dict[str, float] = {}  # by internal query: cores, smoothed
        self._spent: tuple[float, dict[str, float]] = (time.monotonic(), {})

    def tell(self) -> None:
        node, coordinators = self._node, self._coordinators
        rates = {
            name: s.rows_per_s * s.row_bits
            for name, s in node.meter.streams().items()
            if s.has_begun
        }
        owned = coordinators.owned()
        if owned:
            self._weigh()
        sharing: dict[str, list[str]] = {}
        for name, digest in owned.items():
            sharing.setdefault(digest, []).append(name)
        loads = {}
        for query, cores in self._loads.items():
            alike = sharing.get(digest_of(query) or "", ())
            loads.update({name: max(cores / len(alike), _LEAST_LOAD) for name in alike})
        coordinators.tell(loads, rates)

    def _weigh(self) -> None:
        """Cores that fragments take here."""
        now, (since, before) = time.monotonic(), self._spent
        if now - since < _WEIGH_EVERY_S:
            return
        spent = self._node.site.status.seconds()
        fresh = {
            n: max(0.0, s - before[n]) / (now - since)
            for n, s in spent.items()
            if is_fragment(n) and n in before
        }
        known = self._loads
        self._loads = {
            n: x if n not in known else known[n] + _SMOOTHING * (x - known[n])
            for n, x in fresh.items()
        }
        self._spent = now, spent
