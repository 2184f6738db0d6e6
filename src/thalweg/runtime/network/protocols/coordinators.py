"""COSMOS at a live node: queries go to providers by the coordinators' tree; who runs what."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import TimeoutError as NotInTime
from contextlib import suppress
from dataclasses import dataclass

from thalweg.engine.site import SiteError
from thalweg.overlay.distribution.messages import (
    Accepted,
    Measured,
    Rejected,
    SetCapability,
    Submit,
    Withdraw,
)
from thalweg.overlay.distribution.protocol import QueryDistribution
from thalweg.overlay.generator import stable_hash
from thalweg.overlay.protocol import Address
from thalweg.overlay.stack import Stack
from thalweg.runtime.driver.driver import Driver
from thalweg.runtime.driver.errors import DriverClosed

NAME = "distribution"
PLACED_WITHIN_S = 40.0
_LOOK_EVERY_S, _CALL_WITHIN_S = 0.05, 30.0
_NEWS = 0.2  # of what was told last: a smaller change is not worth a report


@dataclass(frozen=True, slots=True)
class Owner:
    address: Address
    by: tuple[Address, ...]  # the coordinators that decided, the root first; (): by a round


@dataclass(frozen=True, slots=True)
class TreePlace:
    """Of a node in the coordinators' tree."""

    root: Address
    parent: Address | None
    led: tuple[tuple[Address, ...], ...]  # clusters, the lowest first
    owned: tuple[str, ...]  # queries that it is to run
    load: float
    capability: float


class LiveCoordinators:
    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._told: dict[object, float] = {}

    def submit(self, queries: Sequence[Submit]) -> dict[str, tuple[str, Owner]]:
        """By title: the protocol's name for it, and who is to run it; all of them, or none. Raises
        SiteError."""
        names: dict[str, str] = {}
        try:
            for query in queries:
                for answer in self._call(query):
                    if isinstance(answer, Rejected):
                        raise SiteError(f"{query.title} can't be placed: {answer.why}")
                    if isinstance(answer, Accepted):
                        names[query.title] = answer.name
            return self._await(names)
        except BaseException:
            for name in names.values():
                self.withdraw(name)
            raise

    def _await(self, names: Mapping[str, str]) -> dict[str, tuple[str, Owner]]:
        until = time.monotonic() + PLACED_WITHIN_S
        while True:
            owners = self.owners()
            if all(name in owners for name in names.values()):
                return {title: (name, owners[name]) for title, name in names.items()}
            if time.monotonic() > until:
                raise SiteError("no coordinator has found a node for it: submit again")
            time.sleep(_LOOK_EVERY_S)

    def withdraw(self, name: str) -> None:
        with suppress(DriverClosed, NotInTime):
            self._call(Withdraw(name))

    def asked(self) -> list[str]:
        """The queries of this node's users."""
        return self._driver.read(lambda stack: list(_it(stack).state.guards.kept))

    def owners(self) -> dict[str, Owner]:
        """Of the queries of this node's users, those whose owners are known."""

        def read(stack: Stack) -> dict[str, Owner]:
            kept = _it(stack).state.guards.kept
            return {n: Owner(g.owner, g.by) for n, g in kept.items() if g.owner is not None}

        return self._driver.read(read)

    def owned(self) -> dict[str, str]:
        """What this node is to run: names, and what they were submitted as."""
        owned = self._driver.read(lambda stack: dict(_it(stack).state.holdings.owned))
        return {name: o.query.text for name, o in owned.items()}

    def tell(self, loads: Mapping[str, float], rates_bps: Mapping[str, float]) -> None:
        """Statistics (COSMOS 3.3.8): of queries that run here, and of streams at home here."""
        new_loads = tuple((n, x) for n, x in loads.items() if self._is_news(("load", n), x))
        rates = tuple(
            (substream_of(s), x) for s, x in rates_bps.items() if self._is_news(("rate", s), x)
        )
        if new_loads or rates:
            self._call(Measured(new_loads, rates))

    def _is_news(self, key: object, value: float) -> bool:
        before = self._told.get(key)
        if before is not None and abs(value - before) <= _NEWS * before:
            return False
        self._told[key] = value
        return True

    def take_no_more(self) -> None:
        """Before a departure: this node is given no queries, and is to be rid of those it has."""
        with suppress(DriverClosed, NotInTime):
            self._call(SetCapability(0.0))

    def place(self) -> TreePlace:
        def read(stack: Stack) -> TreePlace:
            state = _it(stack).state
            place = state.tree.place
            return TreePlace(
                state.tree.root,
                place.parent,
                tuple(tuple(sorted(c.members)) for c in place.led),
                tuple(sorted(state.holdings.owned)),
                sum(o.weight for o in state.holdings.owned.values()),
                state.capability,
            )

        return self._driver.read(read)

    def _call(self, request: object) -> tuple[object, ...]:
        return self._driver.call(NAME, request).result(_CALL_WITHIN_S)


def substream_of(stream: str) -> int:
    """The same at every node: a stream is one substream."""
    return stable_hash(stream.lower()) >> 1


def _it(stack: Stack) -> QueryDistribution:
    found = stack[NAME]
    assert isinstance(found, QueryDistribution)
    return found
