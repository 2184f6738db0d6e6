"""A topology: nodes in domains, and links with delay and bandwidth. What is wrong can't be built.

Arrays instead of objects, so that thousands of nodes cost nothing. Links work both ways. Delays are
whole microseconds, because the simulator counts in them and sums of floats would depend on order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

Ints = NDArray[np.int32]


class BadTopology(ValueError):
    """A network that can't be: says which node or link, and what is wrong with it."""


@dataclass(frozen=True, slots=True, eq=False)
class Topology:
    """Node i is a transit or a stub node of domain `domain[i]` and is drawn at `position[i]`."""

    name: str
    is_transit: NDArray[np.bool_]
    domain: Ints
    position: NDArray[np.float64]  # (nodes, 2), no unit: for drawings
    ends: Ints  # (links, 2)
    latency_us: Ints
    bandwidth_bps: NDArray[np.int64]

    def __post_init__(self) -> None:
        _check_shapes(self)
        _check_links(self)
        _check_connected(self)

    @property
    def nodes(self) -> int:
        return len(self.is_transit)

    @property
    def links(self) -> int:
        return len(self.ends)

    @property
    def stubs(self) -> Ints:
        """The nodes where hosts stand; transit nodes only forward."""
        return np.flatnonzero(~self.is_transit).astype(np.int32)

    def weights(self) -> csr_array:
        """The delays as a sparse symmetric matrix, the form that scipy's graph algorithms take."""
        a, b = self.ends[:, 0], self.ends[:, 1]
        both = np.concatenate([a, b]), np.concatenate([b, a])
        twice = np.concatenate([self.latency_us, self.latency_us]).astype(np.float64)
        return csr_array((twice, both), shape=(self.nodes, self.nodes))


def _check_shapes(t: Topology) -> None:
    if t.nodes == 0:
        raise BadTopology(f"{t.name}: a topology has at least one node")
    wrong = {
        "domain": t.domain.shape != (t.nodes,),
        "position": t.position.shape != (t.nodes, 2),
        "ends": t.ends.ndim != 2 or t.ends.shape[1:] != (2,),
        "latency_us": t.latency_us.shape != t.ends.shape[:1],
        "bandwidth_bps": t.bandwidth_bps.shape != t.ends.shape[:1],
    }
    for field, is_wrong in wrong.items():
        if is_wrong:
            raise BadTopology(
                f"{t.name}: {field} does not fit {t.nodes} nodes and {len(t.ends)} links"
            )


def _check_links(t: Topology) -> None:
    low, high = t.ends.min(axis=1, initial=t.nodes), t.ends.max(axis=1, initial=-1)
    keys = low.astype(np.int64) * t.nodes + high
    repeated = np.ones(t.links, dtype=bool)
    repeated[np.unique(keys, return_index=True)[1]] = False
    faults = (
        (
            (low < 0) | (high >= t.nodes),
            lambda i: f"joins a node that is not there; there are 0 to {t.nodes - 1}",
        ),
        (low == high, lambda i: "joins a node to itself"),
        (repeated, lambda i: "is listed twice"),
        (
            t.latency_us <= 0,
            lambda i: f"has a delay of {t.latency_us[i]} µs; a delay is at least 1",
        ),
        (
            t.bandwidth_bps <= 0,
            lambda i: f"has a bandwidth of {t.bandwidth_bps[i]} bit/s; at least 1 is needed",
        ),
    )
    for at_fault, what in faults:
        if at_fault.any():
            i = int(np.argmax(at_fault))
            raise BadTopology(f"{t.name}: link {i} ({t.ends[i, 0]}–{t.ends[i, 1]}) {what(i)}")


def _check_connected(t: Topology) -> None:
    parts, part_of = connected_components(t.weights(), directed=False)
    if parts > 1:
        lost = int(np.argmax(part_of != part_of[0]))
        raise BadTopology(
            f"{t.name}: not connected, it falls into {parts} parts; "
            f"node {lost}, for one, can't be reached from node 0: add a link"
        )
