"""What a node knows of its place in each tree, and what all parts of the protocol share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from thalweg.overlay.coordinators.distances import Distances
from thalweg.overlay.generator import stable_hash
from thalweg.overlay.membership import Membership
from thalweg.overlay.protocol import Address, Effect
from thalweg.overlay.trees.demand import Demand, Labels
from thalweg.overlay.trees.holding import Action, Holding
from thalweg.overlay.trees.messages import Report
from thalweg.overlay.trees.settings import TreeTimes
from thalweg.overlay.trees.stream import Tree


class Read(Protocol):
    """A stream that this node has, or passes on."""

    @property
    def tree(self) -> Tree: ...

    @property
    def klass(self) -> int | None: ...


class Streams(Protocol):
    """Who moves rows: `subscriptions` in the simulator, `carried` at a live node."""

    @property
    def homes(self) -> Mapping[Tree, object]: ...

    @property
    def relays(self) -> Mapping[Tree, Read]: ...

    @property
    def demand(self) -> Demand: ...

    def classes(self, tree: Tree) -> tuple[int, ...]:
        """What this node and all below it want."""

    def reads(self, tree: Tree) -> int | None:
        """The class of this node's own reader."""

    def counts(self, tree: Tree) -> Counter[tuple[int, ...]]:
        """How many rows of each label came so far."""


@dataclass(slots=True)
class Child:
    heard_us: int
    version: int = -1
    report: Report | None = None
    kids: dict[Address, Report] = field(default_factory=dict)


@dataclass(slots=True)
class Joining:
    """On the way to another parent; the old one goes on until the new one serves."""

    to: Address
    serial: int
    since_us: int
    order: tuple[Address, int] | None = None  # who told it to, and under which number
    path: tuple[Address, ...] | None = None  # of the new parent, once it has accepted


@dataclass(slots=True)
class Adapting:
    """A transformation that is under way: moves that are still to come."""

    round: int
    order: int
    moves: list[tuple[Address, Address]]
    since_us: int


@dataclass(slots=True)
class Place:
    tree: Tree
    parent: Address | None = None
    parent_heard_us: int = 0
    path: tuple[Address, ...] = ()  # from the home to the parent
    stamp: int = -1  # the last that was heard of the home,
    stamp_us: int = 0  # and when
    siblings: tuple[Address, ...] = ()
    uncles: tuple[Address, ...] = ()
    children: dict[Address, Child] = field(default_factory=dict)
    joining: Joining | None = None
    hints: list[Address] = field(default_factory=list)  # under whom to hang, when lost
    adapting: Adapting | None = None
    round_us: int = 0  # of the last round, at the home
    version: int = 0
    report: Report | None = None  # as last told
    kids: tuple[tuple[Address, Report], ...] = ()
    labels: Labels = field(default_factory=dict)  # of the last window
    counted: dict[tuple[int, ...], int] = field(default_factory=dict)  # when it began


class TreesState:
    def __init__(
        self,
        membership: Membership,
        subscriptions: Streams,
        times: TreeTimes | None = None,
        *,
        most_children: int | None = None,
        filter_us: float = 5_000,
        send_us: float = 1_000,
    ) -> None:
        self.times = times or TreeTimes()
        self._members, self._streams = membership, subscriptions
        self.filter_us, self.send_us = filter_us, send_us
        self.hop_us = 0.0  # that rows wait here before they are passed on, whoever is below
        self._most_children = most_children  # but at a home, where everybody may hang
        self._own: Address = ""
        self._serials = 0
        self.places: dict[Tree, Place] = {}
        self._distances = Distances()
        self._window_us = 0  # when it began
        self.holding = Holding(0, self.times.wait_us, self.times.hold_us)
        self.done: dict[str, int] = {}  # transformations by name, for statistics

    def _start(self, now_us: int, address: Address) -> None:
        self._own, self._window_us = address, now_us
        number = stable_hash(address) >> 1
        self.holding = Holding(number, self.times.wait_us, self.times.hold_us)

    def _serial(self) -> int:
        self._serials += 1
        return self._serials

    def _is_home(self, tree: Tree) -> bool:
        return tree in self._streams.homes

    def _place(self, now_us: int, tree: Tree) -> Place:
        if tree not in self.places:
            self.places[tree] = Place(tree, stamp_us=now_us, parent_heard_us=now_us)
        return self.places[tree]

    def _is_sure(self, now_us: int, place: Place) -> bool:
        """Of its way to the home: others may hang here."""
        if self._is_home(place.tree):
            return True
        return place.parent is not None and now_us - place.stamp_us <= self.times.lease_us

    # Parts that others call.

    def _perform(self, now_us: int, actions: list[Action]) -> list[Effect]:
        raise NotImplementedError

    def _fresh(self, place: Place) -> None:
        raise NotImplementedError
