"""SAND at a live node: trees are placed by zones' coordinators; where they stand is asked here."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import TimeoutError as NotInTime
from contextlib import suppress

from thalweg.engine.site import SiteError
from thalweg.overlay.protocol import Address
from thalweg.overlay.sand.messages import AskAgain, DropQuery, PlaceQuery, Refused, Stands
from thalweg.overlay.sand.protocol import Sand
from thalweg.overlay.sand.query import TreeQuery
from thalweg.overlay.stack import Stack
from thalweg.runtime.driver.driver import Driver
from thalweg.runtime.driver.errors import DriverClosed
from thalweg.runtime.network.placing.deploying import NotAdmitted

NAME = "sand"
PLACED_WITHIN_S = 40.0  # a coordinator that dies meanwhile is replaced within a lease
NOT_IN_TIME_S = 4.0  # so long nothing may be in time before a query is refused
_LOOK_EVERY_S, _CALL_WITHIN_S = 0.1, 30.0


class LiveZones:
    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def place(self, queries: Sequence[TreeQuery]) -> dict[str, Stands]:
        """All of them, or none. Raises NotAdmitted for a bound that can't be kept, SiteError."""
        try:
            for query in queries:
                self._ask_for(query)
            return self._await([q.name for q in queries], any(q.bounded for q in queries))
        except BaseException:
            for query in queries:
                self.drop(query.name)
            raise

    def ask_for(self, query: TreeQuery) -> None:
        """And do not wait. Raises SiteError."""
        self._ask_for(query)

    def _ask_for(self, query: TreeQuery) -> None:
        for answer in self._call(PlaceQuery(query)):
            if isinstance(answer, Refused):
                raise SiteError(f"{query.name} can't be placed: {answer.why}")

    def _await(self, names: Sequence[str], is_bounded: bool) -> dict[str, Stands]:
        began = since = time.monotonic()
        while True:
            stands, lacks = self._driver.read(lambda stack: _known(stack, names))
            missing = [n for n in names if n not in stands]
            if not missing:
                return stands
            now = time.monotonic()
            why = "; ".join(lacks.get(missing[0], {}).values()) or "no coordinator has answered yet"
            if "in time" not in why:
                since = now
            if is_bounded and now - since > NOT_IN_TIME_S:
                raise NotAdmitted(f"no placement is within its bound on latency ({why})")
            if now - began > PLACED_WITHIN_S:
                raise SiteError(f"nodes do not come to a placement: {why}; submit again")
            for name in missing:
                self._call(AskAgain(name))
            time.sleep(_LOOK_EVERY_S)

    def drop(self, name: str) -> None:
        with suppress(DriverClosed, NotInTime):
            self._call(DropQuery(name))

    def asked(self) -> list[str]:
        """The queries that this node asks for."""
        return self._driver.read(lambda stack: list(_sand(stack).proxying.queries))

    def stands(self) -> dict[str, Stands]:
        return self._driver.read(lambda stack: dict(_sand(stack).proxying.stands))

    def coordinated(self) -> list[tuple[str, int, dict[int, Address]]]:
        """Zones that this node coordinates: query, top, and the hosts of its operators."""

        def read(stack: Stack) -> list[tuple[str, int, dict[int, Address]]]:
            duties = _sand(stack).coordinating.duties
            return [(query, top, dict(zone.hosts)) for (query, top), zone in duties.items()]

        return self._driver.read(read)

    def _call(self, request: object) -> tuple[object, ...]:
        return self._driver.call(NAME, request).result(_CALL_WITHIN_S)


def _sand(stack: Stack) -> Sand:
    found = stack[NAME]
    assert isinstance(found, Sand)
    return found


def _known(
    stack: Stack, names: Sequence[str]
) -> tuple[dict[str, Stands], dict[str, dict[int, str]]]:
    proxying = _sand(stack).proxying
    stands = {n: proxying.stands[n] for n in names if n in proxying.stands}
    return stands, {n: dict(proxying.lacks.get(n, {})) for n in names}
