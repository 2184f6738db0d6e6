"""Streams, queries and operators as COSMOS 6.3 draws them, cut into the units that move."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from thalweg.placement.arrays import Floats, Ints
from thalweg.placement.fragments.cutting import Leaf, Node, cut

TUPLE_BYTES = 100
FILTER_US, JOIN_US = 20.0, 80.0
SELECTIVITIES = (0.5, 0.8)
WINDOWS_MS = (5_000, 20_000)
RATE = 250.0  # 4 ms between tuples


@dataclass(frozen=True, slots=True)
class Sizes:
    nodes: int = 32
    streams_per_node: int = 3
    queries: int = 500
    filters: int = 4
    theta: float = 0.95  # of the Zipf distribution of streams; 0: all are wanted equally often
    by_operator: bool = False  # units are operators, not fragments


@dataclass(slots=True)
class Workload:
    """A path is what the tuples of one stream pass for one query, operator by operator."""

    delegate: Ints  # stream -> node
    paths: Ints  # path -> its operators, −1 after the last
    length: Ints  # of each path
    query: Ints  # path -> query
    stream: Ints  # path -> stream
    time_s: Floats  # of an operator
    selectivity: Floats
    unit: Ints  # operator -> unit
    home: Ints  # unit -> node
    state_bytes: Floats  # of a unit
    neighbours: list[tuple[int, ...]]  # unit -> units

    @property
    def units(self) -> int:
        return len(self.home)


def popularity(streams: int, theta: float, rng: np.random.Generator) -> Floats:
    """Zipf over streams in random order, so that the popular ones are at no node by intent."""
    weight = 1.0 / np.arange(1, streams + 1) ** theta
    found: Floats = rng.permutation(weight / weight.sum())
    return found


def draw(sizes: Sizes, seed: int) -> Workload:
    rng = np.random.default_rng(seed)
    streams = sizes.nodes * sizes.streams_per_node
    delegate = np.repeat(np.arange(sizes.nodes), sizes.streams_per_node)
    popular = popularity(streams, sizes.theta, rng)
    deck: list[int] = []
    time_us: list[float] = []
    selectivity: list[float] = []
    unit: list[int] = []
    home: list[int] = []
    state: list[float] = []
    near: list[set[int]] = []
    paths: list[list[int]] = []
    query_of: list[int] = []
    stream_of: list[int] = []

    def operator(mean_us: float, at: int) -> int:
        time_us.append(mean_us)
        selectivity.append(float(rng.uniform(*SELECTIVITIES)))
        unit.append(at)
        return len(time_us) - 1

    def new_unit(node: int) -> int:
        home.append(node)
        state.append(0.0)
        near.append(set())
        return len(home) - 1

    for q in range(sizes.queries):
        # Two streams or three: with four filters each, 11.5 operators a query, 5,750 in all.
        wanted = _wanted(rng, 2 + q % 2, popular, deck if sizes.theta == 0 else None)
        leaves: list[list[int]] = []
        rates: list[float] = []
        for s in wanted.tolist():
            node = int(delegate[s])
            whole = new_unit(node) if not sizes.by_operator else -1
            chain = []
            for _ in range(sizes.filters):
                at = whole if whole >= 0 else new_unit(node)
                chain.append(operator(FILTER_US, at))
            leaves.append(chain)
            rates.append(RATE * float(np.prod([selectivity[o] for o in chain])))
        _join(sizes, rng, leaves, rates, operator, new_unit, unit, home, state, selectivity)
        for s, chain in zip(wanted.tolist(), leaves, strict=True):
            paths.append(chain)
            query_of.append(q)
            stream_of.append(s)
            for a, b in itertools.pairwise(chain):
                if unit[a] != unit[b]:
                    near[unit[a]].add(unit[b])
                    near[unit[b]].add(unit[a])
    longest = max(map(len, paths))
    table = np.array([p + [-1] * (longest - len(p)) for p in paths])
    return Workload(
        delegate,
        table,
        np.array([len(p) for p in paths]),
        np.array(query_of),
        np.array(stream_of),
        np.array(time_us) / 1e6,
        np.array(selectivity),
        np.array(unit),
        np.array(home),
        np.array(state),
        [tuple(sorted(n)) for n in near],
    )


def _wanted(rng: np.random.Generator, count: int, popular: Floats, deck: list[int] | None) -> Ints:
    """Different streams; from a shuffled deck, so that none is wanted more often than another."""
    if deck is None:
        drawn: Ints = rng.choice(len(popular), size=count, replace=False, p=popular)
        return drawn
    found: list[int] = []
    while len(found) < count:
        if not deck:
            deck += rng.permutation(len(popular)).tolist()
        position = next((i for i, s in enumerate(deck) if s not in found), None)
        if position is None:
            deck += rng.permutation(len(popular)).tolist()
            continue
        found.append(deck.pop(position))
    return np.array(found)


def _join(sizes, rng, leaves, rates, operator, new_unit, unit, home, state, selectivity) -> None:  # type: ignore[no-untyped-def]
    """A left-deep tree over the streams; each join goes with its faster side (`cut`)."""
    tree: Node = Leaf(0, rates[0])
    for i in range(1, len(leaves)):
        tree = Node(tree, Leaf(i, rates[i]), float(rng.uniform(*SELECTIVITIES)))
    for join in cut(tree):
        with_unit = unit[leaves[join.fragment][-1]]
        at = new_unit(home[with_unit]) if sizes.by_operator else with_unit
        o = operator(JOIN_US, at)
        selectivity[o] = join.selectivity
        window_s = float(rng.uniform(*WINDOWS_MS)) / 1e3
        state[at] += window_s * join.input_rate * TUPLE_BYTES
        for leaf in join.leaves:
            leaves[leaf].append(o)
