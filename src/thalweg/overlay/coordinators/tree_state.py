"""What all rules of the coordinator tree have in common: a node's place, and how it changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from thalweg.overlay.coordinators import messages as say
from thalweg.overlay.coordinators.distances import Distances
from thalweg.overlay.coordinators.search import Search
from thalweg.overlay.coordinators.state import FAR_US, Cluster, Place
from thalweg.overlay.generator import Generator
from thalweg.overlay.protocol import Address, Effect, Message, Send


class Members(Protocol):
    def up(self) -> Sequence[Address]: ...


@dataclass(frozen=True, slots=True)
class TreeSettings:
    k: int = 4
    heartbeat_us: int = 1_000_000
    lease_heartbeats: int = 4
    remeasure_heartbeats: int = 10
    tolerance: float = 0.1  # a parent stays while no other has a total distance so much less

    def __post_init__(self) -> None:
        if self.k < 2:
            raise ValueError(f"clusters of k = {self.k}: 2 is the least")
        if self.heartbeat_us < 1 or self.lease_heartbeats < 2 or self.remeasure_heartbeats < 1:
            raise ValueError("a lease is two heartbeats or more, and a heartbeat takes some time")
        if self.tolerance < 0:
            raise ValueError(f"a tolerance of {self.tolerance} can't be negative")

    @property
    def largest(self) -> int:
        return 3 * self.k - 1

    @property
    def lease_us(self) -> int:
        return self.lease_heartbeats * self.heartbeat_us


class TreeState:
    """State, and the few ways in which it changes."""

    def __init__(self, members: Members, settings: TreeSettings | None = None) -> None:
        self.settings = settings or TreeSettings()
        self.place = Place()
        self.root: Address = ""
        self._members = members
        self._own: Address = ""
        self._generator = Generator(0)
        self._distances = Distances()
        self._search: Search | None = None
        self._hints: list[Address] = []  # whom to ask first for a place above
        self._handover: tuple[Address, Message] | None = None  # repeated until its effect shows

    def distance_us(self, level: int, a: Address, b: Address) -> int | None:
        """Between two members of a cluster that this node leads; None: not measured yet."""
        found = self.place.led[level].distance(self._distances, a, b)
        return found if found < FAR_US else None

    def _become_root(self) -> list[Effect]:
        self.place.parent = self.place.view = self._search = self._handover = None
        self.root = self._own
        return []

    def _lead(self, now_us: int, members: Sequence[Address], replaces: Address | None) -> Cluster:
        """One level more."""
        cluster = Cluster(self._own, {}, now_us, replaces)
        for address in sorted({self._own, *members}):
            cluster.add(now_us, address)
        self.place.led.append(cluster)
        return cluster

    def _step_down(self, now_us: int, level: int, parent: Address) -> None:
        """Lead what is below `level` only, and be a member there."""
        del self.place.led[level:]
        self.place.parent, self.place.parent_heard_us, self.place.view = parent, now_us, None
        self._search = None

    def _heartbeats(self, level: int) -> list[Effect]:
        cluster = self.place.led[level]
        message = say.Heartbeat(
            level,
            tuple(sorted(cluster.members)),
            cluster.deputy(self._distances),
            self._above(level),
            self.root,
            cluster.replaces,
        )
        return [Send(m, message) for m in cluster.others]

    def _above(self, level: int) -> tuple[Address, ...]:
        """Where someone who leads this level instead of this node finds the level above."""
        if level + 1 < self.place.height:
            upper = self.place.led[level + 1].ranked(self._distances)
            return tuple(m for m in upper if m != self._own)[:3]
        return () if self.place.parent is None else (self.place.parent,)
