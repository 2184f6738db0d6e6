"""Which transformation to perform: the best of all (COSMOS 4.2.2, Algorithm 4.1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thalweg.overlay.trees.transformations.cousin_swap import CousinSwap
from thalweg.overlay.trees.transformations.demotion import Demotion
from thalweg.overlay.trees.transformations.nephew_adoption import NephewAdoption
from thalweg.overlay.trees.transformations.parent_child_swap import ParentChildSwap
from thalweg.overlay.trees.transformations.promotion import Promotion
from thalweg.overlay.trees.transformations.shape import Move, Transformation
from thalweg.overlay.trees.transformations.uncle_nephew_swap import UncleNephewSwap
from thalweg.placement.trees.view import View

TRANSFORMATIONS: tuple[Transformation, ...] = (
    Promotion(),
    Demotion(),
    ParentChildSwap(),
    UncleNephewSwap(),
    CousinSwap(),
    NephewAdoption(),
)


@dataclass(frozen=True, slots=True)
class Choice:
    transformation: str
    moves: tuple[Move, ...]
    benefit: float  # of the summed loss


def best(view: View, least: float = 0.0) -> Choice | None:
    """The transformation with the greatest benefit, if it is above `least`."""
    found: Choice | None = None
    for kind in TRANSFORMATIONS:
        columns = kind.candidates(view)
        if not len(columns[0]):
            continue
        benefit = -kind.delta(view, *columns)
        benefit[~np.isfinite(benefit)] = -np.inf  # a delay that is not known
        at = int(benefit.argmax())
        if benefit[at] > (least if found is None else found.benefit):
            moves = kind.moves(*(int(c[at]) for c in columns))
            found = Choice(kind.name, moves, float(benefit[at]))
    return found


def considered(view: View) -> int:
    """How many decisions that was."""
    return sum(len(kind.candidates(view)[0]) for kind in TRANSFORMATIONS)
