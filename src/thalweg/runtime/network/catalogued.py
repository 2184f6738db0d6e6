"""The directory that protocols keep: membership says who is up, the catalogue who has what.

Names are compared as CQL does it, without their case; how a name was written is kept beside it. A
name that two nodes have given unknown to each other stands for the earlier one, and the other is
called `name@node`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import TimeoutError as NotInTime

import msgspec

from thalweg.engine.site import SiteError, WrongUse
from thalweg.overlay.catalogue import Changed, Drop, Forget, Put, Refused
from thalweg.overlay.catalogue.entry import Entry
from thalweg.overlay.stack import Stack
from thalweg.runtime.driver.driver import Driver
from thalweg.runtime.network.directory import Defined, NodeInfo, node_of

NODE = "node"
_ANSWER_WITHIN_S = 30.0


class Catalogued:
    """`Directory` over a driver whose stack has `membership` and `catalogue`."""

    def __init__(self, driver: Driver, me: NodeInfo) -> None:
        self.me = me
        self._driver = driver
        self._listeners: list[Callable[[str], None]] = []
        self._lock = threading.Lock()
        self._is_stale = True
        self._nodes: dict[str, NodeInfo] = {}  # by address
        self.addresses: dict[str, str] = {}  # by name, of nodes that are gone, too
        self._defined: dict[str, Defined] = {}
        driver.on("catalogue", self._changed)

    def announce(self) -> None:
        """Tell the network how this node is reached."""
        self._ask(Put(f"{NODE}:{self.me.name}", NODE, msgspec.json.encode(self.me).decode()))

    # --- what is known

    def nodes(self) -> list[NodeInfo]:
        self._refresh()
        return sorted(self._nodes.values(), key=lambda n: n.name)

    def is_up(self, node: str) -> bool:
        if node == self.me.name:
            return True
        up = self._driver.read(_up)
        return any(n.name == node and n.address in up for n in self.nodes())

    def defined(self) -> Mapping[str, Defined]:
        self._refresh()
        return self._defined

    def _refresh(self) -> None:
        with self._lock:
            if not self._is_stale:
                return
            self._is_stale = False
            names = self._driver.read(_names)
            nodes = [e for e in names.values() if e.kind == NODE]
            infos = (msgspec.json.decode(e.text, type=NodeInfo) for e in nodes)
            # Others may be looking at these: they are replaced, and never changed.
            self._nodes = {**{info.address: info for info in infos}, self.me.address: self.me}
            known = {info.name: info.address for info in self._nodes.values()}
            self.addresses = {**self.addresses, **known}
            found = (self._found(name, entry) for name, entry in names.items())
            self._defined = {d.name.lower(): d for d in found if d is not None}

    def _found(self, name: str, entry: Entry) -> Defined | None:
        owner = self._nodes.get(entry.owner)
        if entry.kind == NODE or owner is None:
            return None
        shown = entry.extra.decode() or entry.name
        if name != entry.name:  # another one has the plain name
            return Defined(f"{shown}@{owner.name}", entry.kind, entry.text, owner.name, shown)
        return Defined(shown, entry.kind, entry.text, owner.name)

    # --- what this node has

    def change(self, had: Iterable[tuple[str, str, str]], gone: Iterable[str] = ()) -> None:
        puts = [Put(name.lower(), kind, text, name.encode()) for name, kind, text in had]
        self._ask(*(Drop(name.lower()) for name in gone), *puts)

    def _ask(self, *requests: Put | Drop | Forget) -> None:
        """All at once: those that come together share a commit."""
        asked = [(r, self._driver.call("catalogue", r)) for r in requests]
        try:
            answers = [(r, future.result(_ANSWER_WITHIN_S)) for r, future in asked]
        except NotInTime:
            raise SiteError("the catalogue can't be written down: is the disk full?") from None
        self._changed(None)
        for request, answer in answers:
            for refused in (x for x in answer if isinstance(x, Refused)):
                if not isinstance(request, Drop):
                    raise WrongUse(f"{refused.name}: {refused.why}")

    # --- nodes that go

    def forget(self, node: str) -> None:
        known = node_of(self, node)
        if self.is_up(node):
            raise WrongUse(
                f"{node} runs: what it has is dropped there, and `thalweg network leave {node}` "
                "takes it out of the network"
            )
        self._ask(Forget(known.address))

    def leave(self) -> None:
        self._ask(Drop(f"{NODE}:{self.me.name}"))

    def on_gone(self, listener: Callable[[str], None]) -> None:
        self._listeners.append(listener)

    def _changed(self, told: object) -> None:
        with self._lock:
            self._is_stale = True
        if isinstance(told, Changed) and told.entry.kind == NODE:
            name = told.entry.name.removeprefix(f"{NODE}:")
            self.addresses = {**self.addresses, name: told.entry.owner}
            for listener in self._listeners if told.entry.dropped else ():
                listener(name)


def _names(stack: Stack) -> dict[str, Entry]:
    names: dict[str, Entry] = stack["catalogue"].names()  # type: ignore[attr-defined]
    return names


def _up(stack: Stack) -> frozenset[str]:
    return frozenset(stack["membership"].up())  # type: ignore[attr-defined]
