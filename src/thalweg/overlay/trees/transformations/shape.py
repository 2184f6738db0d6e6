"""The shape of a transformation."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from thalweg.placement.arrays import Floats
from thalweg.placement.trees.view import View

Rows = np.ndarray


class Move(NamedTuple):
    """A row of the view (a node, with all below it) is to hang under another."""

    node: int
    to: int


class Transformation(Protocol):
    @property
    def name(self) -> str: ...

    def candidates(self, view: View) -> tuple[Rows, ...]:
        """Columns of rows, a candidate each."""

    def delta(self, view: View, *columns: Rows) -> Floats:
        """By how much the summed loss changes, of each candidate; the benefit is its negative."""

    def moves(self, *rows: int) -> tuple[Move, ...]:
        """Who changes its publisher, in this order."""


def pairs_apart(view: View) -> tuple[Rows, Rows]:
    """Every grandchild with every child that is not its parent."""
    nephews = np.repeat(view.grandkids, len(view.kids))
    uncles = np.tile(view.kids, len(view.grandkids))
    apart = view.parent[nephews] != uncles
    return nephews[apart], uncles[apart]
