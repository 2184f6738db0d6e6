"""The balancer of live nodes: which fragment goes from whom to whom, by which way, and why.

Source: as `policy.py` (D-CAPE 3.2, Flux), for whole fragments, of which the parts of an operator
that is spread are some: of those that the most loaded node has, the one that comes nearest to half
of what divides it from the least loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from thalweg.adapt.balancing.costs import Prices, Prospect, cheapest
from thalweg.adapt.moves.ways import MSLB, PRECOPY, PTLB

REPLAY = "replay"  # what PTLB costs, for what PTLB can't move: computed anew for a window
WAYS = (PRECOPY, MSLB, PTLB, REPLAY)


class FragmentLoad(msgspec.Struct, frozen=True):
    """Of a fragment over the last period. `reach_s` is how long it remembers; None: it can't be
    computed anew. `linear`: PTLB can move it."""

    publication: str
    cores: float
    state_bytes: float
    bytes_per_s: float
    reach_s: float | None = None
    linear: bool = False

    def ways(self, allowed: Sequence[str]) -> list[str]:
        """Which of these can move it."""
        anew = None if self.reach_s is None else PTLB if self.linear else REPLAY
        return [w for w in allowed if w in (PRECOPY, MSLB, anew)]


class NodeLoad(msgspec.Struct, frozen=True):
    """`cores`: of all that ticks there, what others read and what does not move included; bits that
    come from other nodes and go to them; memory of its process, and what it may have (None: no
    limit is set)."""

    node: str
    cores: float
    fragments: tuple[FragmentLoad, ...] = ()
    is_busy: bool = False  # with a move
    in_bps: float = 0.0
    out_bps: float = 0.0
    memory_bytes: float = 0.0
    memory_limit: float | None = None

    @property
    def memory_used(self) -> float:
        """As a share of its limit; 0 without one."""
        return 0.0 if not self.memory_limit else self.memory_bytes / self.memory_limit


@dataclass(frozen=True, slots=True)
class Settings:
    threshold: float = 0.25  # of the mean load, by which the most loaded must exceed it
    pause_s: float = 60.0  # between two decisions
    looks: int = 3  # in a row at which the same node must be the most loaded
    least_cores: float = 0.05  # that a move has to shift: less is not worth it
    full: float = 0.9  # of its memory: who uses more gives state away, whatever the loads are
    ways: tuple[str, ...] = WAYS  # that moves may take
    # In core seconds and bytes: what a byte of state costs both nodes, what a link carries.
    prices: Prices = field(default_factory=lambda: Prices(2e-8, 1.0, 100e6))


class Decision(msgspec.Struct, frozen=True):
    publication: str
    at: str
    to: str
    way: str
    why: str


@dataclass(slots=True)
class FragmentBalancer:
    """Told of all loads at each look, it decides."""

    settings: Settings = field(default_factory=Settings)
    _last_s: float | None = None
    _most: str | None = None  # loaded, at the last looks
    _streak: int = 0

    def decide(self, now_s: float, loads: Sequence[NodeLoad]) -> Decision | None:
        s = self.settings
        if len(loads) < 2:
            return None
        ordered = sorted(loads, key=lambda x: (-x.cores, x.node))
        most, least = ordered[0], ordered[-1]
        mean = sum(x.cores for x in loads) / len(loads)
        fullest = max(loads, key=lambda x: (x.memory_used, x.node))
        if is_full := fullest.memory_used > s.full:
            most, least = fullest, min(loads, key=lambda x: (x.memory_used, x.cores, x.node))
        elif most.cores <= mean * (1 + s.threshold):
            self._most, self._streak = None, 0
            return None
        self._streak = self._streak + 1 if self._most == most.node else 1
        self._most = most.node
        rests = self._last_s is not None and now_s - self._last_s < s.pause_s
        if rests or self._streak < s.looks or any(x.is_busy for x in loads):
            return None
        chosen = self._largest(most, least) if is_full else self._chosen(most, least)
        if chosen is None:
            return None
        self._last_s, self._most, self._streak = now_s, None, 0
        way, reason = self._way(chosen)
        why = (
            f"{most.node} has {most.cores:.2f} cores of ticks, {least.node} {least.cores:.2f}, the "
            f"mean is {mean:.2f}, and this is {chosen.cores:.2f}; {reason}"
        )
        if is_full:
            assert most.memory_limit is not None
            why = (
                f"{most.node} uses {most.memory_bytes / 1e6:,.0f} of {most.memory_limit / 1e6:,.0f}"
                f" MB of memory; {reason}"
            )
        return Decision(chosen.publication, most.node, least.node, way, why)

    def _chosen(self, most: NodeLoad, least: NodeLoad) -> FragmentLoad | None:
        """The one that leaves the two nearest to each other; none if the other would have more then
        than the first has now."""
        between = most.cores - least.cores
        able = [f for f in self._movable(most) if self.settings.least_cores <= f.cores < between]
        return min(able, key=lambda f: (abs(f.cores - between / 2), f.publication), default=None)

    def _largest(self, most: NodeLoad, least: NodeLoad) -> FragmentLoad | None:
        """Of those with state, for which the other has room."""
        room = float("inf")
        if least.memory_limit is not None:
            room = self.settings.full * least.memory_limit - least.memory_bytes
        able = [f for f in self._movable(most) if 0 < f.state_bytes <= room]
        return max(able, key=lambda f: (f.state_bytes, f.publication), default=None)

    def _movable(self, load: NodeLoad) -> list[FragmentLoad]:
        return [f for f in load.fragments if f.ways(self.settings.ways)]

    def _way(self, load: FragmentLoad) -> tuple[str, str]:
        s, window = self.settings, load.reach_s or 0.0
        prospect = Prospect(load.state_bytes, load.cores, load.bytes_per_s, window)
        ways = {PTLB if w == REPLAY else w: w for w in load.ways(s.ways)}
        cost = cheapest(prospect, s.prices, ways)
        way = ways[cost.way]
        told, seconds = f"{load.state_bytes / 1e6:,.1f} MB of state", cost.total(prospect, s.prices)
        return way, f"{told}, {way} costs the least: {seconds:,.2f} core s"
