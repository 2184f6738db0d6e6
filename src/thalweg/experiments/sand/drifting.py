"""Queries placed by SAND's protocol while rates and ways drift (2.3, 3)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from thalweg.experiments.sand.peers import NEVER_US, Peers, make_peers, routes_of
from thalweg.overlay.protocol import Address
from thalweg.overlay.sand.messages import Observe, PlaceQuery
from thalweg.overlay.sand.protocol import Sand
from thalweg.overlay.sand.query import query_of
from thalweg.overlay.sand.settings import SandSettings
from thalweg.overlay.stack import Stack
from thalweg.placement.arrays import Floats, Ints, floats, ints
from thalweg.placement.sand.configurations import Ways
from thalweg.placement.sand.optimal import optimal
from thalweg.placement.sand.tree import Tree
from thalweg.placement.sand.workload import Shape, draw_tree
from thalweg.sim.kernel import SECOND_US
from thalweg.sim.world import World

FIRST_S = 60  # until all queries stand, before anything drifts
RENEW_US = 2 * SECOND_US


@dataclass(frozen=True, slots=True)
class Drift:
    seed: int
    peers: int
    queries: int
    depth: int
    algorithm: str
    k: int
    steps: int
    step_s: float
    remeasure_s: float
    looks: int
    noise: float
    rate_change: float
    slow_hosts: float
    slow_ms: float
    redrawn: float


@dataclass(slots=True)
class Followed:
    over_optimum: list[float] = field(default_factory=list)  # at the end of each step
    moves: int = 0  # of operators, from one look to the next
    messages: int = 0


class _Slowing:
    """A network on which hosts become hard to reach: more time on every way from and to them."""

    has_queues = False

    def __init__(self, base_us: np.ndarray) -> None:
        self._base_us = base_us
        self.extra_us = np.zeros(len(base_us), np.int64)

    def latency_us(self, source: int, target: int) -> int:
        if source == target:
            return 0
        extra = self.extra_us[source] + self.extra_us[target]
        return int(self._base_us[source, target] + extra)

    def arrival_us(self, now_us: int, source: int, target: int, size_bytes: int) -> int:
        return now_us + self.latency_us(source, target)

    def ways(self) -> Ways:
        extra = self.extra_us[:, None] + self.extra_us[None, :]
        latency = (self._base_us + extra) / 1_000
        np.fill_diagonal(latency, 0.0)
        return Ways(floats(latency), floats(latency))


class _Truth:
    """The rates and ways that there are, step by step; the same for every way to follow them."""

    def __init__(self, drift: Drift) -> None:
        self._drift = drift
        self._rng = np.random.default_rng([drift.seed, 61])
        self._looking = np.random.default_rng([drift.seed, 62])  # what it sees changes nothing
        self.peers: Peers = make_peers(drift.peers, drift.seed)
        self.network = _Slowing(self.peers.network.matrix_us.astype(np.int64))
        self.trees = [self._tree(number) for number in range(drift.queries)]
        self._shares = [_selectivities(tree) for tree in self.trees]
        self._redraw_hosts(1.0)

    def _tree(self, number: int) -> Tree:
        rng = np.random.default_rng([self._drift.seed, 75, number])
        places = rng.permutation(self._drift.peers)[: 2**self._drift.depth + 1]
        drawn = draw_tree(Shape(), self._drift.depth, int(places[0]), places[1:].tolist(), rng)
        return replace(drawn, name=f"{number}")

    def step(self) -> None:
        self._redraw_hosts(self._drift.redrawn)
        for number, tree in enumerate(self.trees):
            rates = np.array(tree.rate_bps)
            sources = list(tree.sources)
            change = self._rng.normal(0, self._drift.rate_change, len(sources))
            rates[sources] = np.clip(rates[sources] * np.exp(change), 1e5, 1e8)
            self.trees[number] = replace(
                tree, rate_bps=_followed(tree, rates, self._shares[number])
            )

    def _redraw_hosts(self, share: float) -> None:
        count = self._drift.peers
        which = self._rng.random(count) < share
        is_slow = self._rng.random(count) < self._drift.slow_hosts
        extra = np.where(is_slow, self._rng.uniform(0, self._drift.slow_ms, count), 0.0)
        self.network.extra_us[which] = (1_000 * extra[which]).astype(np.int64)

    def seen_bps(self, rate_bps: float) -> float:
        """As a host measures it: bursts make it more or less."""
        return rate_bps * float(np.exp(self._looking.normal(0, self._drift.noise)))

    def optima(self) -> list[Ints]:
        ways = self.network.ways()
        return [optimal(tree, ways) for tree in self.trees]

    def cost(self, placements: list[Ints]) -> float:
        ways = self.network.ways()
        pairs = zip(self.trees, placements, strict=True)
        return float(sum(tree.cost(at, ways.weight) for tree, at in pairs))


def _selectivities(tree: Tree) -> Floats:
    """Of each node that takes something: what it gives, for what it takes."""
    taken = [sum(float(tree.rate_bps[i]) for i in below) for below in tree.inputs]
    return floats(
        float(rate) / t if t > 0 else 1.0 for rate, t in zip(tree.rate_bps, taken, strict=True)
    )


def _followed(tree: Tree, rates: np.ndarray, shares: Floats) -> Floats:
    """Operators give their share of what their inputs give now; inputs come first."""
    for node, below in enumerate(tree.inputs):
        if below:
            rates[node] = shares[node] * sum(rates[i] for i in below)
    return floats(rates)


def follow(drift: Drift, saving: float, *, sees: bool) -> Followed:
    """By the protocol; one that does not see anything is placed once."""
    truth, found = _Truth(drift), Followed()
    remeasure_us = int(drift.remeasure_s * SECOND_US) if sees else NEVER_US
    settings = SandSettings(
        RENEW_US, 5 * RENEW_US, SECOND_US, remeasure_us, samples=3, saving=saving
    )

    def build(address: Address) -> Stack:
        routes = routes_of(truth.peers, address)
        return Stack([Sand(routes, routes, settings)])

    world = World(build, seed=drift.seed, network=truth.network)
    for address in truth.peers.addresses:
        world.start(address)
    for tree in truth.trees:
        query = query_of(tree, truth.peers.addresses, drift.algorithm, 1, drift.k)
        world.call(query.proxy, "sand", PlaceQuery(query))
    world.run_for(FIRST_S * SECOND_US)
    before = _standing(world, truth)
    for _ in range(drift.steps):
        truth.step()
        for _ in range(drift.looks):
            if sees:
                _observe(world, truth, before)
            world.run_for(int(drift.step_s / drift.looks * SECOND_US))
            after = _standing(world, truth)
            found.moves += _moved(before, after)
            before = after
        found.over_optimum.append(truth.cost(before) / truth.cost(truth.optima()))
    found.messages = sum(world.sent.values())
    return found


def optimum_followed(drift: Drift) -> Followed:
    """By one who knows everything, and places everything anew at each step."""
    truth, found = _Truth(drift), Followed()
    before = truth.optima()
    for _ in range(drift.steps):
        truth.step()
        after = truth.optima()
        found.over_optimum.append(1.0)
        found.moves += _moved(before, after)
        before = after
    return found


def _observe(world: World, truth: _Truth, placements: list[Ints]) -> None:
    """Every host of an operator or a source measures what it gives, roughly."""
    for tree, at in zip(truth.trees, placements, strict=True):
        for node in range(tree.root):
            address = truth.peers.addresses[int(at[node])]
            seen = Observe(tree.name, node, truth.seen_bps(float(tree.rate_bps[node])))
            world.call(address, "sand", seen)


def _standing(world: World, truth: _Truth) -> list[Ints]:
    at = [np.array(tree.pinned) for tree in truth.trees]
    for number, host in enumerate(world.up()):
        assert host.stack is not None
        sand = host.stack["sand"]
        assert isinstance(sand, Sand)
        for name, node in sand.hosting.running:
            at[int(name)][node] = number
    if any((places < 0).any() for places in at):
        raise RuntimeError("an operator stands nowhere at the end of a step: make it longer")
    return [ints(places) for places in at]


def _moved(before: list[Ints], after: list[Ints]) -> int:
    return int(sum((b != a).sum() for b, a in zip(before, after, strict=True)))
