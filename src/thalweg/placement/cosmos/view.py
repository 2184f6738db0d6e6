"""What a coordinator knows when it decides: its children, and where everything else is.

COSMOS 3.3.3: the network subgraph of a coordinator has its child coordinators as vertices; a child
stands for all that is below it. What lies outside is known by region: a sibling of the coordinator
or of one above it, with the number of queries there that want each substream. So every decision
counts the pull of all queries, at a price of some hundred kilobytes from above.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from thalweg.placement.arrays import Floats, Ints, floats
from thalweg.placement.cosmos.cost import Counts, counts
from thalweg.placement.cosmos.hierarchy import Cluster
from thalweg.placement.cosmos.mapping import MappingTask, map_greedily, refine, relieve
from thalweg.placement.cosmos.model import Balance, Network, Substreams, Vertices
from thalweg.placement.cosmos.overlaps import overlaps
from thalweg.placement.cosmos.system import System


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """Queries elsewhere: where they are, and how many want each substream."""

    centre: int
    counts: Counts  # [substream]


@dataclass(frozen=True, slots=True, eq=False)
class View:
    latency_ms: Floats  # [child, child]
    proxy_ms: Floats  # [provider, child]
    field: Floats  # [substream, child]: what a query pays there for wanting the substream
    limits: Floats  # [child]

    def pull(self, vertices: Vertices) -> Floats:
        """[vertex, child]: the cost of edges to sources, to proxies and to queries elsewhere."""
        found: Floats = vertices.interests @ self.field + vertices.results @ self.proxy_ms
        return found

    def task(self, vertices: Vertices, substreams: Substreams) -> MappingTask:
        edges = overlaps(vertices.interests, substreams.rate_bps)
        pull = self.pull(vertices)
        return MappingTask(edges, pull, vertices.weight, self.latency_ms, self.limits)

    def cut(self, vertices: Vertices, substreams: Substreams, mapping: Ints) -> float:
        """The weighted edge cut as it is seen from here, without a list of edges."""
        wanting = counts(vertices.interests, mapping, len(self.limits))
        pull = float(self.pull(vertices)[np.arange(len(mapping)), mapping].sum())
        reached = self.latency_ms @ wanting
        return pull + 0.5 * float(np.einsum("as,as,s->", wanting, reached, substreams.rate_bps))

    def chance(self, vertices: Vertices, substreams: Substreams) -> float:
        """That of a mapping which knows nothing but the limits, on the mean."""
        share = self.limits / max(float(self.limits.sum()), 1e-300)
        apart = float(share @ self.latency_ms @ share)
        rows = vertices.interests
        own = np.bincount(rows.indices, rows.data.astype(float) ** 2, rows.shape[1])
        all_ = np.bincount(rows.indices, rows.data, rows.shape[1])
        pairs = 0.5 * float(((all_**2 - own) * substreams.rate_bps).sum())
        return float((self.pull(vertices) @ share).sum()) + pairs * apart


def view(
    cluster: Cluster,
    network: Network,
    substreams: Substreams,
    limits: Floats,
    elsewhere: Sequence[Region] = (),
) -> View:
    """The view of a coordinator; `limits` are those of its children."""
    centres = np.array([child.centre for child in cluster.children])
    way_ms = network.source_ms[:, centres][substreams.source]
    if elsewhere:
        apart = network.latency_ms[np.ix_(np.array([r.centre for r in elsewhere]), centres)]
        way_ms = way_ms + np.stack([r.counts for r in elsewhere], axis=1) @ apart
    return View(
        floats(network.latency_ms[np.ix_(centres, centres)]),
        floats(network.latency_ms[:, centres]),
        floats(way_ms * substreams.rate_bps[:, None]),
        limits,
    )


def global_view(system: System, balance: Balance) -> View:
    """The view of one who knows every provider, as if there were no levels."""
    providers = tuple(Cluster(i) for i in range(len(system.network)))
    flat = Cluster(system.root.centre, providers)
    return view(flat, system.network, system.substreams, system.limits(balance))


def decide(vertices: Vertices, substreams: Substreams, seen: View) -> Ints:
    """Which child each vertex goes to (Algorithm 3.2)."""
    task = seen.task(vertices, substreams)
    return refine(task, relieve(task, map_greedily(task)))
