"""The protocols by which nodes place queries together, for a node's stack."""

from __future__ import annotations

from dataclasses import dataclass, field

from thalweg.overlay.coordinators.tree import CoordinatorTree, TreeSettings
from thalweg.overlay.distribution.protocol import QueryDistribution
from thalweg.overlay.distribution.settings import Settings as DistributionSettings
from thalweg.overlay.membership import Membership
from thalweg.overlay.prefix.protocol import Prefix
from thalweg.overlay.protocol import NodeProtocol
from thalweg.overlay.sand.protocol import Sand
from thalweg.overlay.sand.settings import SandSettings
from thalweg.plan.engines import SHARED

SAND, COSMOS = ("edge", "edge+", "in-network"), "cosmos"
ROUND_US = 30_000_000  # between rounds of redistribution
DECIDED = (*SAND, COSMOS)  # strategies that nodes can carry out together


@dataclass(frozen=True, slots=True)
class PlacingSettings:
    sand: SandSettings = field(default_factory=SandSettings)
    tree: TreeSettings = field(default_factory=TreeSettings)
    distribution: DistributionSettings = field(
        default_factory=lambda: DistributionSettings(round_us=ROUND_US)
    )


def placing_settings(cores: float | None, engine: str) -> PlacingSettings:
    """For a node with so many cores for queries. One whose engine takes no state over is given no
    whole queries: they could not move there."""
    capability = 0.0 if engine != SHARED else 1.0 if cores is None else cores
    return PlacingSettings(distribution=DistributionSettings(capability, round_us=ROUND_US))


def placing_protocols(membership: Membership, settings: PlacingSettings) -> list[NodeProtocol]:
    """Zones are found by prefix routing; coordinators are those of the tree."""
    prefix = Prefix(membership)
    tree = CoordinatorTree(membership, settings.tree)
    return [
        prefix,
        Sand(prefix, membership, settings.sand),
        tree,
        QueryDistribution(membership, tree, settings.distribution),
    ]
