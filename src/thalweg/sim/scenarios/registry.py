"""All scenarios, by name. A new one is a file beside this one, and a line here."""

from __future__ import annotations

from difflib import get_close_matches

from thalweg.sim.scenario import Scenario
from thalweg.sim.scenarios.alerts import AlertsScenario
from thalweg.sim.scenarios.catalogue import CatalogueScenario
from thalweg.sim.scenarios.chord import ChordScenario
from thalweg.sim.scenarios.coordinators import CoordinatorsScenario
from thalweg.sim.scenarios.dht import DhtScenario
from thalweg.sim.scenarios.distribution import DistributionScenario
from thalweg.sim.scenarios.gossip import GossipScenario
from thalweg.sim.scenarios.handover import HandoverScenario
from thalweg.sim.scenarios.membership import MembershipScenario
from thalweg.sim.scenarios.moves import MovesScenario
from thalweg.sim.scenarios.p2p_join import P2PJoinScenario
from thalweg.sim.scenarios.partners import PartnersScenario
from thalweg.sim.scenarios.prefix import PrefixScenario
from thalweg.sim.scenarios.query_spreading import QuerySpreadingScenario
from thalweg.sim.scenarios.sand import SandScenario
from thalweg.sim.scenarios.site_partners import SitePartnersScenario
from thalweg.sim.scenarios.succession import SuccessionScenario
from thalweg.sim.scenarios.swap import SwapScenario
from thalweg.sim.scenarios.trees import TreesScenario
from thalweg.sim.scenarios.wished_trees import WishedTreesScenario

_ALL: tuple[type[Scenario], ...] = (
    MembershipScenario,
    ChordScenario,
    DhtScenario,
    PrefixScenario,
    QuerySpreadingScenario,
    GossipScenario,
    CatalogueScenario,
    SuccessionScenario,
    AlertsScenario,
    CoordinatorsScenario,
    DistributionScenario,
    SandScenario,
    TreesScenario,
    WishedTreesScenario,
    P2PJoinScenario,
    SwapScenario,
    PartnersScenario,
    MovesScenario,
    HandoverScenario,
    SitePartnersScenario,
)
SCENARIOS: dict[str, type[Scenario]] = {kind.name: kind for kind in _ALL}


class UnknownScenario(LookupError):
    """Says which there are."""


def scenario_named(name: str) -> type[Scenario]:
    if name not in SCENARIOS:
        close = get_close_matches(name, SCENARIOS, n=1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(SCENARIOS)}"
        raise UnknownScenario(f"there is no scenario {name!r}; {hint}")
    return SCENARIOS[name]
