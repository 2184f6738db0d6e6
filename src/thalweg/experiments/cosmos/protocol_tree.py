"""The coordinator tree that nodes have built themselves, as query distribution takes it.

`overlay.coordinators` keeps the tree by a protocol; a node of height h leads a cluster at each of
the levels 0 to h − 1 and is a member of each of them.
"""

from __future__ import annotations

from thalweg.overlay.protocol import Address
from thalweg.placement.cosmos.hierarchy import Cluster
from thalweg.sim.scenarios.coordinators import tree_at
from thalweg.sim.world import World


class NoTree(ValueError):
    """The nodes have not agreed on one tree yet."""


def tree_of(world: World) -> Cluster:
    """The tree over all nodes that are up; a provider is named by its host's index."""
    up = {host.address: host for host in world.up()}
    roots = [address for address, host in up.items() if tree_at(host).place.is_root]
    if len(roots) != 1:
        raise NoTree(f"there are {len(roots)} roots: let the simulation go on until there is one")

    def below(address: Address, height: int) -> Cluster:
        if address not in up:
            raise NoTree(f"{address} is in a cluster, but is not up: let the simulation go on")
        host = up[address]
        if height == 0:
            return Cluster(host.index)
        led = tree_at(host).place.led
        if len(led) < height:
            raise NoTree(f"{address} does not lead its cluster yet: let the simulation go on")
        members = sorted(led[height - 1].members)
        return Cluster(host.index, tuple(below(m, height - 1) for m in members))

    root = roots[0]
    return below(root, tree_at(up[root]).place.height)
