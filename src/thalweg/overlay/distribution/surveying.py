"""What a coordinator knows: its children at each level, what runs below them, and what is fair."""

from __future__ import annotations

from collections.abc import Iterable

from thalweg.overlay.coordinators.tree import CoordinatorTree
from thalweg.overlay.distribution.entries import Rate
from thalweg.overlay.distribution.picture import Picture, Subtree, between
from thalweg.overlay.distribution.reporting import Reporter
from thalweg.overlay.protocol import Address


class Survey:
    def __init__(self, tree: CoordinatorTree, reporter: Reporter) -> None:
        self._tree = tree
        self._reporter = reporter
        self.own: Address = ""
        self.rates: dict[int, Rate] = {}
        self._pictures: dict[int, tuple[object, Picture]] = {}
        self._summed_up: tuple[int, Subtree] | None = None  # as of a version of the ledger

    @property
    def version(self) -> int:
        """Another one whenever there is something new below, be it only which child says it."""
        return self._reporter.revision

    @property
    def top(self) -> int:
        """The highest level at which this node leads a cluster; −1 where it leads none."""
        return self._tree.place.height - 1

    @property
    def parent(self) -> Address | None:
        return self._tree.place.parent

    def others(self, level: int) -> list[Address]:
        """The members of a cluster besides its leader, this node."""
        return list(self._tree.place.led[level].others)

    def learn(self, rates: Iterable[Rate]) -> None:
        self.rates = {r.substream: r for r in rates}

    def reported_rates(self) -> tuple[Rate, ...]:
        entries = self._reporter.ledger.entries.values()
        return tuple(e for e in entries if isinstance(e, Rate))

    def fair(self, arriving: float = 0.0) -> float:
        """Load for each unit of capability, if all had their share."""
        whole = self.whole()
        capability = whole.total_capability
        return (whole.total_load + arriving) / capability if capability > 0 else 0.0

    def whole(self) -> Subtree:
        """All that is at and below this node, each query once."""
        if self._summed_up is None or self._summed_up[0] != self.version:
            whole = Subtree(self.own)
            whole.add(self._reporter.ledger.entries.values())
            self._summed_up = (self.version, whole)
        return self._summed_up[1]

    def picture(self, level: int) -> Picture:
        """The cluster that this node leads at a level."""
        members = sorted(self._tree.place.led[level].members)
        latency_ms = between(members, lambda a, b: self._tree.distance_us(level, a, b))
        key = (self.version, tuple(members), latency_ms.tobytes())
        known = self._pictures.get(level)
        if known is None or known[0] != key:
            children = [self._subtree(level, member) for member in members]
            known = self._pictures[level] = (key, Picture(children, latency_ms, self.rates))
        return Picture(known[1].children, latency_ms, self.rates)

    def _subtree(self, level: int, member: Address) -> Subtree:
        """This node itself is a member of all its clusters: below it are those of lower levels."""
        found = Subtree(member)
        if member != self.own:
            found.add(self._reporter.below(member))
            return found
        found.add(self._reporter.own.values())
        for below in range(level):
            for other in self.others(below):
                found.add(self._reporter.below(other))
        return found
