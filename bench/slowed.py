"""Nodes that have a share of a core each: stopped and let go on in turns."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from bench.nodes import NodeProcess

PERIOD_S = 0.05  # in which a node runs for its share


class Slowed:
    """Nodes with a share of a core each."""

    def __init__(self, nodes: list[NodeProcess], shares: list[float]) -> None:
        self._nodes, self.shares = nodes, shares
        self._stop = threading.Event()

    def _slow(self, place: int) -> None:
        node = self._nodes[place]
        while not self._stop.is_set():
            share = self.shares[place]
            if share < 1:
                node.pause()
                self._stop.wait(PERIOD_S * (1 - share))
                node.go_on()
            self._stop.wait(PERIOD_S * share)

    @contextmanager
    def slowed(self) -> Iterator[None]:
        threads = [threading.Thread(target=self._slow, args=(i,)) for i in range(len(self._nodes))]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in threads:
                thread.join()
