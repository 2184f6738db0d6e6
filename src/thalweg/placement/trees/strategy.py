"""The one interface of those who build trees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from thalweg.placement.trees.model import Cargo, Forest, Nodes


class TreeStrategy(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def about(self) -> str:
        """In a line, for listings."""

    def build(self, nodes: Nodes, cargos: Sequence[Cargo], seed: int = 0) -> Forest:
        """A tree for each cargo, over all who want some of it."""
