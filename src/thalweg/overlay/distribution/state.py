"""All that a node knows and does about queries, for the roles that it has at the same time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from thalweg.overlay.coordinators.tree import CoordinatorTree
from thalweg.overlay.distribution.entries import Entry, Provider, key_of
from thalweg.overlay.distribution.granting import Granter
from thalweg.overlay.distribution.providing import Holdings
from thalweg.overlay.distribution.proxy_leases import Guards
from thalweg.overlay.distribution.reporting import Reporter
from thalweg.overlay.distribution.settings import Settings
from thalweg.overlay.protocol import Address


class Failures(Protocol):
    def is_down(self, address: Address) -> bool: ...


@dataclass(slots=True)
class State:
    settings: Settings
    failures: Failures
    tree: CoordinatorTree
    guards: Guards = field(init=False)
    holdings: Holdings = field(init=False)
    granter: Granter = field(init=False)
    reporter: Reporter = field(default_factory=Reporter)
    capability: float = field(init=False)
    own: Address = ""
    life: int = 0

    def __post_init__(self) -> None:
        settings = self.settings
        self.guards = Guards(settings.lease_us)
        self.holdings = Holdings(settings.lease_us)
        self.granter = Granter(settings.answer_within_us, settings.tries)
        self.capability = settings.capability

    def tell(self, now_us: int, entry: Entry) -> None:
        """It will be in the next report; what did not change is not told again (COSMOS 3.3.8)."""
        self.reporter.set_own(now_us, key_of(entry), entry)

    def tell_capability(self, now_us: int) -> None:
        self.tell(now_us, Provider(self.own, self.capability))

    def knows(self, name: str) -> bool:
        """Whether a query would come back from what this node has."""
        key = f"q {name}"
        return (
            name in self.guards.kept
            or name in self.holdings.owned
            or key in self.reporter.ledger.entries
            or key in self.reporter.orphans
        )

    @property
    def children(self) -> list[Address]:
        return [m for cluster in self.tree.place.led for m in cluster.others]
