"""The simulator's scenarios, played by live nodes, of which one stops and comes back."""

import pytest
from tests.runtime.cluster import QUICK
from tests.runtime.live_world import LiveWorld
from tests.runtime.test_protocols_live import CHORD, GOSSIP, PREFIX, TREE
from tests.sim.scenarios.test_catalogue import NeverCompares as Silent

from thalweg.overlay.catalogue import CatalogueSettings
from thalweg.overlay.chord.messages import Create
from thalweg.overlay.chord.protocol import Chord
from thalweg.overlay.chord.settings import Settings as ChordSettings
from thalweg.overlay.coordinators.tree import CoordinatorTree
from thalweg.overlay.dht.protocol import Dht
from thalweg.overlay.dht.protocol import Settings as DhtSettings
from thalweg.overlay.distribution.protocol import QueryDistribution
from thalweg.overlay.distribution.settings import Settings as DistributionSettings
from thalweg.overlay.gossip import Gossip
from thalweg.overlay.membership import Membership
from thalweg.overlay.prefix.protocol import Prefix
from thalweg.overlay.query_spreading import QuerySpreading
from thalweg.overlay.sand.protocol import Sand
from thalweg.overlay.sand.settings import SandSettings
from thalweg.overlay.stack import Stack
from thalweg.overlay.trees.protocol import Trees
from thalweg.overlay.trees.settings import TreeTimes
from thalweg.overlay.trees.subscriptions import Subscriptions
from thalweg.sim.networks.uniform import UniformNetwork
from thalweg.sim.scenarios.catalogue import CatalogueScenario
from thalweg.sim.scenarios.chord import SETTINGS, ChordScenario
from thalweg.sim.scenarios.coordinators import CoordinatorsScenario
from thalweg.sim.scenarios.dht import DhtScenario
from thalweg.sim.scenarios.distribution import SLACK, DistributionScenario
from thalweg.sim.scenarios.gossip import GossipScenario
from thalweg.sim.scenarios.membership import MembershipScenario
from thalweg.sim.scenarios.prefix import PrefixScenario
from thalweg.sim.scenarios.sand import SandScenario
from thalweg.sim.scenarios.trees import TreesScenario

MS = 1_000
RING = ChordSettings(
    successors=SETTINGS.successors,
    stabilise_every_us=CHORD.stabilise_every_us,
    fix_finger_every_us=CHORD.fix_finger_every_us,
    find_self_every_us=CHORD.find_self_every_us,
    answer_within_us=CHORD.answer_within_us,
    alone_after_us=CHORD.alone_after_us,
)


class LiveMembership(MembershipScenario):
    def build(self, address):
        return Stack([Membership(QUICK)])


class OnChord:
    """The first node begins the ring."""

    def build(self, address):
        membership = Membership(QUICK)
        chord = Chord(membership, RING)
        return Stack([membership, chord, *self.over(membership, chord)])

    def over(self, membership, chord):
        return []

    def admit(self, world, address):
        if address == "n1:1" and world.hosts[address].lives == 1:
            world.call(address, "chord", Create())
        super().admit(world, address)


class LiveChord(OnChord, ChordScenario):
    pass


class LiveDht(OnChord, DhtScenario):
    def over(self, membership, chord):
        return [Dht(chord, DhtSettings(answer_within_us=200 * MS, tend_every_us=200 * MS))]


class LiveSand(OnChord, SandScenario):
    def over(self, membership, chord):
        times = SandSettings(
            renew_every_us=150 * MS,
            lease_us=600 * MS,
            measure_within_us=100 * MS,
            remeasure_every_us=2_000 * MS,
        )
        return [Sand(chord, membership, times)]


class LivePrefix(PrefixScenario):
    def build(self, address):
        membership = Membership(QUICK)
        return Stack([membership, Prefix(membership, PREFIX)])


class LiveGossip(GossipScenario):
    def build(self, address):
        membership = Membership(QUICK)
        routing = Prefix(membership, PREFIX)
        spreading = QuerySpreading(routing)
        return Stack([membership, routing, spreading, Gossip(routing, spreading, GOSSIP)])


class LiveCatalogue(CatalogueScenario):
    settings = CatalogueSettings(compare_every_us=150 * MS, settle_us=50 * MS)

    def build(self, address):
        membership = Membership(QUICK)
        return Stack([membership, self.catalogue(membership)])


class Near:
    """All are as far from each other as the next."""

    settings = TREE

    def network(self):
        return UniformNetwork(1_000)


class LiveCoordinators(Near, CoordinatorsScenario):
    def build(self, address):
        membership = Membership(QUICK)
        return Stack([membership, CoordinatorTree(membership, self.settings)])


class LiveDistribution(Near, DistributionScenario):
    times = DistributionSettings(
        1.0,
        SLACK,
        beat_us=80 * MS,
        lease_us=300 * MS,
        silent_us=900 * MS,
        orphaned_us=1_000 * MS,
        round_us=300 * MS,
        answer_within_us=150 * MS,
    )

    def build(self, address):
        membership = Membership(QUICK)
        tree = CoordinatorTree(membership, self.settings)
        return Stack([membership, tree, QueryDistribution(membership, tree, self.times)])


class LiveTrees(Near, TreesScenario):
    homes = ("n1:1", "n2:1")
    times = TreeTimes(
        round_us=300 * MS,
        window_us=100 * MS,
        beat_us=60 * MS,
        lease_us=300 * MS,
        stale_us=800 * MS,
        join_us=100 * MS,
        wait_us=200 * MS,
        move_us=250 * MS,
        hold_us=800 * MS,
    )

    def build(self, address):
        membership = Membership(QUICK)
        streams = Subscriptions(60 * MS, 300 * MS)
        return Stack([membership, streams, Trees(membership, streams, self.times)])


@pytest.mark.parametrize(
    "kind",
    [
        LiveMembership,
        LiveChord,
        LiveDht,
        LiveSand,
        LivePrefix,
        LiveGossip,
        LiveCatalogue,
        LiveCoordinators,
        LiveDistribution,
        LiveTrees,
    ],
    ids=lambda kind: kind.name,
)
def test_live_nodes_keep_the_promises_of_the_scenario(tmp_path, kind):
    play(kind, tmp_path, within_s=30)


def test_a_dropped_rule_is_noticed(tmp_path):
    class NeverCompares(LiveCatalogue):
        def catalogue(self, membership):
            return Silent(membership, self.settings)

    with pytest.raises(AssertionError, match="not yet"):
        play(NeverCompares, tmp_path, within_s=3)


def play(kind, folder, within_s):
    with LiveWorld(kind, folder, 6) as world:
        for number in range(1, 7):
            world.enter(f"n{number}:1")
        world.settle(within_s)
        world.act(10, every_s=0.02)
        world.crash("n4:1")
        world.act(10, every_s=0.05)
        world.start("n4:1")
        world.act(5, every_s=0.02)
        world.settle(within_s)
