"""Connections that are used again and again, one for each node."""

from __future__ import annotations

from collections.abc import Callable

from thalweg.runtime.data.client import DataClient


class Kept:
    """For one thread. `connect` makes a connection to a node; one that has failed is dropped."""

    def __init__(self, connect: Callable[[str], DataClient]) -> None:
        self._connect, self._open = connect, dict[str, DataClient]()

    def to(self, node: str) -> DataClient:
        """Raises Unreachable."""
        if node not in self._open:
            self._open[node] = self._connect(node)
        return self._open[node]

    def drop(self, node: str) -> None:
        if (client := self._open.pop(node, None)) is not None:
            client.close()

    def close(self) -> None:
        for node in list(self._open):
            self.drop(node)
