"""Nodes that distribute queries among themselves by the protocol, in the simulator.

Every node is a provider; substreams enter at some of them. Nothing fails here: what is looked at is
how good the distribution is that nodes arrive at, each with what it knows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from thalweg.experiments.cosmos.protocol_tree import NoTree, tree_of
from thalweg.overlay.coordinators.tree import CoordinatorTree, TreeSettings
from thalweg.overlay.distribution.messages import Accepted, Measured, Started, Submit
from thalweg.overlay.distribution.protocol import QueryDistribution, Settings
from thalweg.overlay.membership import Join, Membership
from thalweg.overlay.protocol import Address
from thalweg.overlay.stack import Stack
from thalweg.placement.arrays import NONE, Ints, floats, ints
from thalweg.placement.cosmos.model import Network
from thalweg.placement.cosmos.system import System
from thalweg.placement.cosmos.workload import Drawn
from thalweg.sim.host import Host
from thalweg.sim.kernel import SECOND_US
from thalweg.sim.networks import transit_stub
from thalweg.sim.networks.hosts import Hosts, scattered
from thalweg.sim.scenarios.coordinators import imperfect
from thalweg.sim.world import World

US_PER_MS = 1_000
_TREE_WITHIN_S = 600


@dataclass(eq=False)
class Nodes:
    """All nodes, once their tree stands."""

    hosts: Hosts
    k: int
    slack: float
    seed: int
    moves: int = 0  # queries that started at a provider, beyond the first time
    owner: dict[str, int] = field(default_factory=dict)  # by title
    _names: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.world = World(
            self._build, seed=self.seed, network=self.hosts, on_deliver=self._delivered
        )
        for number in range(len(self.hosts.places)):
            address = f"n{number}"
            self.world.start(address)
            self.world.call(address, "membership", Join(("n0",) if number else ()))
            self.world.run_for(SECOND_US)
        for _ in range(_TREE_WITHIN_S):
            if imperfect(self.world, self.world.up(), self._tree_settings) is None:
                break
            self.world.run_for(SECOND_US)
        self.root = tree_of(self.world)

    @property
    def _tree_settings(self) -> TreeSettings:
        return TreeSettings(k=self.k)

    def _build(self, _address: Address) -> Stack:
        membership = Membership()
        tree = CoordinatorTree(membership, self._tree_settings)
        settings = Settings(slack=self.slack)
        return Stack([membership, tree, QueryDistribution(membership, tree, settings)])

    def _delivered(self, host: Host, _protocol: str, value: object) -> None:
        match value:
            case Accepted(title, name):
                self._names[name] = title
            case Started(query):
                title = self._names[query.name]
                self.moves += title in self.owner
                self.owner[title] = host.index

    @cached_property
    def latency_ms(self) -> np.ndarray:
        return self.hosts.matrix_us / US_PER_MS

    def system(self, drawn: Drawn, source_at: Ints) -> System:
        """The same nodes, tree and queries for one who knows everything."""
        network = Network(
            floats(self.latency_ms),
            floats(self.latency_ms[source_at]),
            floats(np.ones(len(self.latency_ms))),
        )
        return System(network, self.root, drawn.substreams, drawn.queries)

    def measure_rates(self, drawn: Drawn, source_at: Ints) -> None:
        for source, node in enumerate(source_at.tolist()):
            mine = np.flatnonzero(drawn.substreams.source == source)
            rates = tuple((int(s), float(drawn.substreams.rate_bps[s])) for s in mine)
            self.world.call(f"n{node}", "distribution", Measured(rates_bps=rates))

    def submit(self, drawn: Drawn, query: int) -> None:
        rows = drawn.queries.interests
        wanted = rows.indices[rows.indptr[query] : rows.indptr[query + 1]]
        result_bps = float(drawn.queries.results[[query]].sum())
        asked = Submit(
            f"q{query}",
            "",
            tuple(sorted(wanted.tolist())),
            result_bps,
            float(drawn.queries.weight[query]),
            float(drawn.queries.state_bytes[query]),
        )
        self.world.call(f"n{drawn.proxy[query]}", "distribution", asked)

    def run(self, seconds: float) -> None:
        self.world.run_for(int(seconds * SECOND_US))

    def mapping(self, queries: int) -> Ints:
        """The provider of each query; all must have one."""
        found = np.full(queries, NONE, np.int32)
        for title, host in self.owner.items():
            found[int(title[1:])] = host
        if (found == NONE).any():
            raise NoTree(f"{int((found == NONE).sum())} queries have no provider yet")
        return ints(found)


def nodes(count: int, k: int, slack: float, seed: int) -> Nodes:
    topology = transit_stub.generate(transit_stub.small(max(96, 2 * count)), seed)
    return Nodes(scattered(topology, count, seed), k, slack, seed)
