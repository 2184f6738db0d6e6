"""Dissemination trees whose nodes are told by others where to hang, as in a live network.

No rounds: wishes come at any time, to several nodes at once, and are drawn without sense: under
one's own child, under somebody who moves just now, under who is gone. Not more than a few children
are taken. Everything that `trees` promises holds.
"""

from __future__ import annotations

from dataclasses import replace

from thalweg.overlay.membership import Membership
from thalweg.overlay.trees.protocol import Prefer, Trees
from thalweg.overlay.trees.subscriptions import Subscriptions
from thalweg.sim.scenarios.trees import TreesScenario
from thalweg.sim.world import World

MOST_CHILDREN = 3
WISHES = 0.25  # of all nodes, at each act


class WishedTreesScenario(TreesScenario):
    name = "wished-trees"
    about = "dissemination trees whose nodes are told where to hang, while rows travel"
    suite_seeds = 10  # `trees` has the rest
    times = replace(TreesScenario.times, round_us=None)

    def make(self, membership: Membership, streams: Subscriptions) -> Trees:
        return Trees(membership, streams, self.times, most_children=MOST_CHILDREN)

    def act(self, world: World) -> None:
        super().act(world)
        addresses = sorted(world.hosts)
        for address in addresses:
            if world.hosts[address].is_up and self.generator.chance(WISHES):
                tree = self.generator.choice(self.trees)
                to = self.generator.choice(addresses)
                world.call(address, "trees", Prefer(tree, to))
