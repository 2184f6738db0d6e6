"""What a node is made of beside its site, and what it does by itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from thalweg.runtime.network.computing import Computing
from thalweg.runtime.network.fragments.succession import LiveSuccession
from thalweg.runtime.network.labels.labelling import Labelling
from thalweg.runtime.network.moves.moving import LiveMoves
from thalweg.runtime.network.placing.planning import Limits
from thalweg.runtime.network.trees.trees import LiveTrees
from thalweg.runtime.swap.joins import Joins

if TYPE_CHECKING:  # nodes whose queries are planned at one node do without its imports
    from thalweg.runtime.network.protocols.deciding import Deciding


@dataclass(frozen=True, slots=True)
class Components:
    """What is made before a node's site is opened, and attached to it when the node begins. None:
    the node does without."""

    computing: Computing = field(default_factory=Computing)
    labelling: Labelling = field(default_factory=Labelling)
    succession: LiveSuccession | None = None
    moving: LiveMoves | None = None
    trees: LiveTrees | None = None
    joins: Joins | None = None
    deciding: Deciding | None = None


@dataclass(frozen=True, slots=True)
class Habits:
    """What a node does by itself, and within which limits."""

    limits: Limits = field(default_factory=Limits)
    strategy: str = "local"  # who decides where queries run that are handed in here
    replan_every_s: float | None = None  # how often it looks whether plans still fit; None: never
    replanning_advises: bool = False  # it says what it would change, and changes nothing
    copy_every_s: float | None = None  # of what nobody could rebuild and others compute for it
