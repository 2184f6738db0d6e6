"""How long coordinators work: all of them together, and the longest chain of steps.

The simulation of the source runs on one machine, and so does this. Steps of different subtrees
would go on at the same time, so the response time is the longest chain: up from a leaf to the root,
and down again. Time on the wire is not counted, as in the source.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from thalweg.placement.cosmos.hierarchy import Cluster

_UP = ("coarsen",)
_AT_THE_ROOT = ("exchange", "centralised")


@dataclass
class Stopwatch:
    """Goes as `run` into what coordinators do; times are CPU times."""

    spent: dict[tuple[int, str], float] = field(default_factory=dict)

    def __call__(self, cluster: Cluster, step: str, work: Callable[[], Any]) -> Any:
        start = time.process_time()
        done = work()
        key = (id(cluster), step)
        self.spent[key] = self.spent.get(key, 0.0) + time.process_time() - start
        return done

    @property
    def total_s(self) -> float:
        return sum(self.spent.values())

    def response_s(self, root: Cluster) -> float:
        last = sum(self._of(root, step) for step in _AT_THE_ROOT)
        return self._up(root) + self._down(root) + last

    def _up(self, cluster: Cluster) -> float:
        below = max((self._up(c) for c in cluster.children), default=0.0)
        return below + sum(self._of(cluster, step) for step in _UP)

    def _down(self, cluster: Cluster) -> float:
        below = max((self._down(c) for c in cluster.children), default=0.0)
        return below + self._of(cluster, "map") + self._of(cluster, "settle")

    def _of(self, cluster: Cluster, step: str) -> float:
        return self.spent.get((id(cluster), step), 0.0)
