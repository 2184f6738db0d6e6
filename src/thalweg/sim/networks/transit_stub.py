"""Transit-stub topologies, as the generator GT-ITM makes them.

The model (Zegura, Calvert, Bhattacharjee, *How to model an internetwork*, 1996): transit domains,
which form a random graph among themselves; in each, transit nodes, again a random graph; at each
transit node some stub domains, each a random graph of stub nodes with one link up; and a few extra
links from stubs to transit nodes or to other stubs. Nodes lie in a plane, domains in small squares
of it, and a link's delay is its length. GT-ITM draws a graph anew until it is connected; here the
missing links are added instead (between the nearest nodes of two parts), which always ends.

Sources: SAND 6.1 (14 transit domains, 500 ms longest delay between stub nodes), COSMOS 3.4 (4,096
nodes) and 4.4.1 (1,500 nodes, 20 ms mean delay).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from thalweg.sim.networks import latencies
from thalweg.sim.networks.random_graph import Pairs, Points, random_graph
from thalweg.sim.networks.topology import Topology


@dataclass(frozen=True, slots=True)
class Bandwidths:
    """By kind of link, in bits per second."""

    transit: int = 2_488_000_000
    access: int = 155_000_000
    stub: int = 100_000_000


@dataclass(frozen=True, slots=True)
class TransitStub:
    """What to make. Sizes are exact in total; stub domains vary around their mean."""

    name: str
    nodes: int
    transit_domains: int
    transit_nodes: int  # in each transit domain
    stubs_per_transit_node: int
    longest_ms: float | None = None  # scale to this longest delay between stub nodes,
    mean_ms: float | None = None  # or to this mean delay between stub nodes
    extra_links: int = 0
    domain_link_probability: float = 0.4
    transit_link_probability: float = 0.6
    stub_link_probability: float = 0.3
    bandwidths: Bandwidths = Bandwidths()

    def __post_init__(self) -> None:
        if min(self.transit_domains, self.transit_nodes, self.stubs_per_transit_node) < 1:
            raise ValueError(
                f"{self.name}: at least one transit domain, transit node and stub is needed"
            )
        if self.nodes < self.transits + self.stub_domains:
            raise ValueError(
                f"{self.name}: {self.nodes} nodes are too few for {self.transits} transit nodes "
                f"and {self.stub_domains} stub domains of one node or more"
            )
        if (self.longest_ms is None) == (self.mean_ms is None):
            raise ValueError(f"{self.name}: give longest_ms or mean_ms, one of them")
        if (self.longest_ms or self.mean_ms or 0) <= 0:
            raise ValueError(f"{self.name}: a delay is greater than zero")
        if not 0 <= self.extra_links <= self.nodes:
            raise ValueError(
                f"{self.name}: {self.extra_links} extra links; 0 to {self.nodes} (nodes) make sense"
            )
        for field in ("domain", "transit", "stub"):
            if not 0 <= (p := getattr(self, f"{field}_link_probability")) <= 1:
                raise ValueError(f"{self.name}: {field}_link_probability is {p}, not in [0, 1]")

    @property
    def transits(self) -> int:
        return self.transit_domains * self.transit_nodes

    @property
    def stub_domains(self) -> int:
        return self.transits * self.stubs_per_transit_node


SAND = TransitStub("sand", 1_000, 14, 4, 3, longest_ms=500.0, extra_links=20)
COSMOS_1500 = TransitStub("cosmos-1500", 1_500, 6, 5, 6, mean_ms=20.0, extra_links=30)
COSMOS_4096 = TransitStub("cosmos-4096", 4_096, 8, 8, 8, mean_ms=20.0, extra_links=60)
PRESETS = {preset.name: preset for preset in (SAND, COSMOS_1500, COSMOS_4096)}

# Squares of one plane: the world is 1 wide; a domain takes so much of it.
_TRANSIT_WIDTH = 0.12
_STUB_WIDTH = 0.025


def small(nodes: int, *, longest_ms: float = 200.0) -> TransitStub:
    """A topology of any size from 12 on, with the proportions of the presets: for tests."""
    domains = max(1, min(8, nodes // 48))
    return TransitStub(f"small-{nodes}", nodes, domains, 2, 2, longest_ms=longest_ms)


def generate(what: TransitStub, seed: int) -> Topology:
    """The topology of this seed; its delays are scaled to what was asked for."""
    rng = np.random.default_rng([seed, what.nodes])
    positions, domains, links, kinds = _lay_out(what, rng)
    ends = np.asarray(links, dtype=np.int32)
    lengths = np.linalg.norm(positions[ends[:, 0]] - positions[ends[:, 1]], axis=1)
    speeds = what.bandwidths
    bandwidth = np.asarray([speeds.transit, speeds.access, speeds.stub], dtype=np.int64)[kinds]
    is_transit = np.arange(what.nodes) < what.transits

    def scaled(us_per_width: float) -> Topology:
        delays = np.maximum(1, np.rint(lengths * us_per_width)).astype(np.int32)
        return Topology(
            f"{what.name}-{seed}", is_transit, domains, positions, ends, delays, bandwidth
        )

    # Measured on a fine scale first, so that rounding does not show in the result.
    fine = scaled(1e6)
    delays = latencies.between(fine, fine.stubs)
    if what.longest_ms is not None:
        return scaled(1e6 * what.longest_ms * 1_000 / latencies.diameter(delays))
    assert what.mean_ms is not None
    return scaled(1e6 * what.mean_ms * 1_000 / latencies.mean(delays))


def _lay_out(
    what: TransitStub, rng: Generator
) -> tuple[Points, NDArray[np.int32], Pairs, list[int]]:
    """Positions, domains, links and their kinds (0 transit, 1 access, 2 within stubs)."""
    centres = rng.random((what.transit_domains, 2))
    domain_of_transit = np.repeat(np.arange(what.transit_domains), what.transit_nodes)
    spread = (rng.random((what.transits, 2)) - 0.5) * _TRANSIT_WIDTH
    transit = centres[domain_of_transit] + spread
    sizes = _stub_sizes(what, rng)
    parents = np.repeat(np.arange(what.transits), what.stubs_per_transit_node)
    # A stub lies near its transit node, a few widths off, as far as its neighbours'.
    middles = transit[parents] + (rng.random((what.stub_domains, 2)) - 0.5) * 4 * _STUB_WIDTH
    stub_of = np.repeat(np.arange(what.stub_domains), sizes)
    stub = middles[stub_of] + (rng.random((len(stub_of), 2)) - 0.5) * _STUB_WIDTH
    positions = np.concatenate([transit, stub])
    domains = np.concatenate([domain_of_transit, what.transit_domains + stub_of])

    links: Pairs = []
    kinds: list[int] = []

    def add(new: Pairs, kind: int) -> None:
        links.extend(new)
        kinds.extend([kind] * len(new))

    for d in range(what.transit_domains):
        inside = np.flatnonzero(domain_of_transit == d)
        add(random_graph(inside, positions, what.transit_link_probability, rng), 0)
    for a, b in random_graph(
        np.arange(what.transit_domains), centres, what.domain_link_probability, rng
    ):
        a_nodes = np.flatnonzero(domain_of_transit == a)
        b_nodes = np.flatnonzero(domain_of_transit == b)
        add([(int(rng.choice(a_nodes)), int(rng.choice(b_nodes)))], 0)
    firsts = what.transits + np.concatenate([[0], np.cumsum(sizes)])
    for s in range(what.stub_domains):
        inside = np.arange(firsts[s], firsts[s + 1])
        add(random_graph(inside, positions, what.stub_link_probability, rng), 2)
        add([(int(parents[s]), int(rng.choice(inside)))], 1)
    add(_extra(what, set(links), rng), 1)
    return positions, domains.astype(np.int32), links, kinds


def _stub_sizes(what: TransitStub, rng: Generator) -> NDArray[np.int64]:
    """Between half and three halves of the mean, at least one, summing up exactly."""
    total = what.nodes - what.transits
    shares = rng.uniform(0.5, 1.5, what.stub_domains)
    spare = total - what.stub_domains
    upto = np.floor(np.cumsum(shares) / shares.sum() * spare + 1e-9).astype(np.int64)
    return 1 + np.diff(upto, prepend=0)


def _extra(what: TransitStub, taken: set[tuple[int, int]], rng: Generator) -> Pairs:
    """Links from a stub node to any transit node or to a node of another stub, half of each."""
    found: Pairs = []
    while len(found) < what.extra_links:
        stub = int(rng.integers(what.transits, what.nodes))
        low, high = (0, what.transits) if len(found) % 2 == 0 else (what.transits, what.nodes)
        other = int(rng.integers(low, high))
        pair = (min(stub, other), max(stub, other))
        if stub != other and pair not in taken and pair[::-1] not in taken:
            taken.add(pair)
            found.append(pair)
    return found


def preset(name: str, /, **changes: object) -> TransitStub:
    """A preset by its name, with changes; an unknown name lists the known ones."""
    if name not in PRESETS:
        raise ValueError(f"there is no network {name}; there are {', '.join(PRESETS)}")
    return replace(PRESETS[name], **changes)  # type: ignore[arg-type]
