"""What a node knows of its place in the tree.

A node leads clusters at the levels 0 to h − 1 (h is the height of what is below it; 0 for a plain
leaf) and is in each of them itself. At level h it is a member of its parent's cluster; without a
parent it is a root. So the parent leads level h and is higher than its child: parents can't form a
circle.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from thalweg.overlay.coordinators.clustering import ranked
from thalweg.overlay.coordinators.distances import Distances
from thalweg.overlay.coordinators.messages import UNKNOWN, Heartbeat
from thalweg.overlay.protocol import Address

FAR_US = 1 << 40  # stands for a distance that is not known yet


@dataclass(slots=True)
class Member:
    heard_us: int
    distances_us: dict[Address, int] = field(default_factory=dict)


@dataclass(slots=True)
class Cluster:
    """A cluster as its leader sees it; the leader is one of the members."""

    leader: Address
    members: dict[Address, Member]
    changed_us: int
    replaces: Address | None = None  # the leader before, until all have had time to hear of it
    _version: int = 0
    _ranking: tuple[int, int, list[Address]] | None = None  # as of this and the own version

    def add(self, now_us: int, address: Address) -> None:
        if address in self.members:
            self.members[address].heard_us = now_us
        else:
            self.members[address] = Member(now_us)
            self._change(now_us)

    def remove(self, now_us: int, address: Address) -> None:
        if address != self.leader and self.members.pop(address, None) is not None:
            self._change(now_us)

    def hear(self, now_us: int, address: Address, distances_us: dict[Address, int]) -> None:
        """A member is alive, and has measured this."""
        member = self.members.get(address)
        if member is not None:
            member.heard_us = now_us
            if member.distances_us != distances_us:
                member.distances_us = distances_us
                self._version += 1

    def _change(self, now_us: int) -> None:
        self.changed_us = now_us
        self._version += 1

    @property
    def others(self) -> list[Address]:
        return [m for m in self.members if m != self.leader]

    def distance(self, own: Distances, a: Address, b: Address) -> int:
        """By whichever of the two has measured it, the lesser if both have."""
        known = [d for d in (self._said(own, a, b), self._said(own, b, a)) if d != UNKNOWN]
        return min(known) if known else FAR_US

    def is_measured(self, own: Distances) -> bool:
        members = sorted(self.members)
        return all(
            self.distance(own, a, b) < FAR_US for i, a in enumerate(members) for b in members[:i]
        )

    def ranked(self, own: Distances) -> list[Address]:
        """From the median outwards; worked out again only when something was measured anew."""
        if self._ranking is None or self._ranking[:2] != (self._version, own.version):
            order = ranked(sorted(self.members), lambda a, b: self.distance(own, a, b))
            self._ranking = (self._version, own.version, order)
        return self._ranking[2]

    def deputy(self, own: Distances) -> Address | None:
        return next((m for m in self.ranked(own) if m != self.leader), None)

    def _said(self, own: Distances, a: Address, b: Address) -> int:
        if a == self.leader:
            return own.to(b)
        return self.members[a].distances_us.get(b, UNKNOWN)


@dataclass(slots=True)
class Place:
    """Where this node stands: the clusters that it leads, and its parent."""

    led: list[Cluster] = field(default_factory=list)
    parent: Address | None = None
    parent_heard_us: int = 0
    view: Heartbeat | None = None  # the parent's last word

    @property
    def height(self) -> int:
        return len(self.led)

    @property
    def is_root(self) -> bool:
        return self.parent is None

    def siblings(self, own: Address) -> list[Address]:
        """The other members of the parent's cluster, the parent among them."""
        return [m for m in self.view.members if m != own] if self.view is not None else []

    def near(self, own: Address) -> list[Address]:
        """All with whom this node shares a cluster, each once, in a fixed order."""
        found = {m: None for cluster in self.led for m in cluster.others}
        found.update(dict.fromkeys(self.siblings(own)))
        return list(found)
