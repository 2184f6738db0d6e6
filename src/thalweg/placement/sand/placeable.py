"""What no strategy could place, and why: ways that don't exist, and bounds that nothing meets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thalweg.placement.arrays import NONE, Floats, Ints, ints
from thalweg.placement.sand.dynamic import all_hosts, least_delay_ms, least_rest_ms
from thalweg.placement.sand.tree import ROUNDING, Tree


class Unplaceable(ValueError):
    """Says which resource stands against it, and where."""

    def __init__(self, resource: str, host: int, message: str) -> None:
        super().__init__(message)
        self.resource = resource
        self.host = host


def limit_ms(tree: Tree) -> float:
    return tree.bound_ms * (1 + ROUNDING)


@dataclass(frozen=True, slots=True, eq=False)
class Onward:
    """Of each node, where its output must pass: the next pinned node above it, then the rest."""

    host: Ints
    tail_ms: Floats  # from there to the proxy


def onward(tree: Tree, latency_ms: Floats) -> Onward:
    host, tail = np.full(len(tree), tree.proxy, np.int32), np.zeros(len(tree))
    for node in range(tree.root - 1, -1, -1):
        above = int(tree.parent[node])
        if tree.pinned[above] == NONE:
            host[node], tail[node] = host[above], tail[above]
        else:
            host[node] = tree.pinned[above]
            tail[node] = tail[above] + _way(latency_ms, int(host[node]), int(host[above]))
    return Onward(ints(host), tail)


def direct_delays_ms(tree: Tree, latency_ms: Floats) -> Floats:
    """Of each source, its way to the proxy with no stop but at pinned operators."""
    ahead = onward(tree, latency_ms)
    return np.array(
        [
            _way(latency_ms, int(tree.pinned[s]), int(ahead.host[s])) + ahead.tail_ms[s]
            for s in tree.sources
        ]
    )


def direct_ms(tree: Tree, latency_ms: Floats) -> float:
    """The longest of them: what bounds and stretch (6.1) are measured by."""
    return float(direct_delays_ms(tree, latency_ms).max())


def check_direct(tree: Tree, latency_ms: Floats) -> None:
    """Passes what can run at the proxy if nowhere else; a strategy that begins there needs it."""
    check_possible(tree, latency_ms)
    delays = direct_delays_ms(tree, latency_ms)
    if _in_time(tree, delays):
        return
    source = tree.sources[int(np.argmax(delays))]
    raise Unplaceable(
        "latency",
        int(tree.pinned[source]),
        f"{tree.names[source]} comes to the proxy in time only by a detour over other hosts, which "
        "this strategy does not look for: take optimal",
    )


def check_possible(tree: Tree, latency_ms: Floats) -> None:
    """Passes exactly what has a placement."""
    _check_hosts(tree, latency_ms)
    if _in_time(tree, direct_delays_ms(tree, latency_ms)):
        return
    hosts = all_hosts(tree, len(latency_ms))
    alone = [r[0] for r in least_rest_ms(tree, hosts, latency_ms)]
    for source in tree.sources:
        name, at = tree.names[source], int(tree.pinned[source])
        if not np.isfinite(alone[source]):
            raise Unplaceable("link", at, f"no way leads from {name} to the proxy: add a link")
    source = max(tree.sources, key=lambda s: float(alone[s]))
    together = float(least_delay_ms(tree, hosts, latency_ms)[-1][0])
    if together > limit_ms(tree):
        raise Unplaceable(
            "latency",
            int(tree.pinned[source]),
            f"nothing meets the bound of {tree.bound_ms:g} ms: {tree.names[source]} alone takes "
            f"{alone[source]:g} ms to the proxy, and all take {together:g} ms at least",
        )


def _check_hosts(tree: Tree, latency_ms: Floats) -> None:
    if int(tree.pinned.max()) >= len(latency_ms):
        node = int(np.argmax(tree.pinned))
        raise Unplaceable(
            "source",
            NONE,
            f"{tree.names[node]} stands at host {tree.pinned[node]}, and the last one is "
            f"{len(latency_ms) - 1}",
        )


def _in_time(tree: Tree, delays_ms: Floats) -> bool:
    return bool(np.isfinite(delays_ms).all() and delays_ms.max() <= limit_ms(tree))


def _way(latency_ms: Floats, source: int, target: int) -> float:
    return 0.0 if source == target else float(latency_ms[source, target])
