"""Publications of other nodes: opened for this node, and given back."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from thalweg.engine.failures import FAILURES
from thalweg.engine.site import Site
from thalweg.engine.site.publications import is_mirror
from thalweg.plan.catalog import StreamDef
from thalweg.plan.windows import FOREVER
from thalweg.runtime.data.client import DataClient, NotServed, Unreachable
from thalweg.runtime.data.messages import Answer, Close, Done, MovedTo, Open, Opened
from thalweg.runtime.data.routes import Route
from thalweg.runtime.network.directory import Defined, Directory, NodeInfo, NotKnown, node_of
from thalweg.runtime.network.mirrors.mirrored import ALL_PEERS, ALL_SITES, NodeAway, Wanted, home_of
from thalweg.runtime.network.mirrors.routing import Routing

log = logging.getLogger(__name__)

SUBSCRIPTIONS = "mirrors"  # of the subscriptions that this node has opened
_LEFT = "left"  # a note of those that others' rows are still held by
_CLOSING = "closing"  # a note of those that their publishers have not heard the end of


class Subscribing:
    """`connect` gives a connection to a publisher's address, with the options for that node."""

    def __init__(
        self,
        directory: Directory,
        routing: Routing,
        connect: Callable[..., DataClient],
        options: Callable[[NodeInfo], Mapping[str, Any]],
    ) -> None:
        self._directory, self._routing = directory, routing
        self._connect_to, self._options = connect, options
        self._closing, self._leaving = threading.Lock(), threading.Lock()
        self._releasing: set[str] = set()
        self.trees = False  # whether streams may be had from others than their homes

    def attach(self, site: Site) -> None:
        self._site = site

    def connect(self, home: str) -> DataClient:
        """Raises Unreachable."""
        try:
            node = node_of(self._directory, home)
            client = self._connect_to(node.data, **self._options(node))
            client.called = node.name
            return client
        except NotKnown as error:
            raise Unreachable(str(error)) from None

    # --- opening

    def subscribed(
        self,
        entry: Defined,
        want: Wanted,
        since: int | None = None,
        at: str | None = None,
        held: bool = True,
    ) -> Opened:
        """Raises NodeAway."""
        try:
            return self.subscribe(entry, want, since, at, held)
        except (Unreachable, NotServed) as error:
            raise NodeAway(
                f"{entry.name} is at node {entry.node}, which does not hand it out now "
                f"({error}): submit again when it is there"
            ) from None

    def subscribe(
        self,
        entry: Defined,
        want: Wanted,
        since: int | None = None,
        at: str | None = None,
        held: bool = True,
    ) -> Opened:
        """Not `held`: nobody has it from this node. Raises Unreachable, NotServed."""
        number = self._site.engine.store.take_numbers(SUBSCRIPTIONS, 1)
        where, columns = want.profile.where, want.profile.columns
        me, here = self._directory.me.name, self._site.catalog.find(entry.name)
        is_here = isinstance(here, StreamDef) and is_mirror(here)
        held_from = self._routing.held_from(here) if is_here else None  # type: ignore[arg-type]
        is_held = self.trees and held
        client = self.connect(at or entry.node)
        try:
            asked = Open(
                entry.name, me, number, want.reach, where, since, is_held, held_from, columns
            )
            answer = client.ask(asked)
        finally:
            client.close()
        assert isinstance(answer, Opened)
        return answer

    # --- giving back

    def give_back(self, opened: Iterable[tuple[str, str]]) -> None:
        """Tell publishers that their publications are not read any more, now or later."""
        with self._closing:
            waiting = {*self._waiting(), *opened}
            left, moved = [], []
            for pair in sorted(waiting):
                answer = self._close(*pair)
                if answer is None:
                    left.append(pair)
                elif isinstance(answer, MovedTo) and not self._is_route(answer.publication):
                    moved.append((answer.at, answer.publication))  # nobody goes over any more
            left += [pair for pair in moved if self._close(*pair) is None]
            if waiting:
                self._write_waiting(left)

    def _waiting(self) -> list[tuple[str, str]]:
        note = self._site.engine.store.note(_CLOSING)
        return [] if note is None else [(home, name) for home, name in json.loads(note)]

    def _write_waiting(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._site.engine.store.write_note(_CLOSING, json.dumps(sorted(pairs)).encode())

    def _is_route(self, publication: str) -> bool:
        """Whether a mirror is fed by it, or will be."""
        mirrors = (s for s in self._site.catalog.streams() if is_mirror(s))
        return self._routing.are_fed_by(publication, mirrors)

    def _close(self, home: str, publication: str) -> Answer | None:
        """None: the publisher has not heard it."""
        if home in (ALL_PEERS, ALL_SITES):
            return Done()  # `dropped` tells them
        if self._is_down(home):  # one that is silent would be waited for, by who goes on without it
            return None
        try:
            client = self.connect(home)
            try:
                return client.ask(Close(publication))
            finally:
                client.close()
        except Unreachable:
            return None
        except NotServed as error:
            log.warning("%s at %s: %s", publication, home, error)
        return Done()

    def _is_down(self, node: str) -> bool:
        is_known = any(n.name == node for n in self._directory.nodes())
        return is_known and not self._directory.is_up(node)

    # --- giving back later

    def left(self, stream: StreamDef, routes: Iterable[Route], since: int) -> None:
        """A mirror is not fed by these any more, but from an instant on by others."""
        given = [(r.at or home_of(stream), r.publication) for r in routes]
        if self.trees:
            self._leave(stream, given, since)
        elif given:  # not on the caller's thread: rows wait for it
            with self._closing:
                self._write_waiting({*self._waiting(), *given})
            threading.Thread(target=self._give_back, daemon=True).start()

    def _give_back(self) -> None:
        with suppress(*FAILURES):  # when the next one is given back, or at the next start, then
            self.give_back(())

    def _leave(self, stream: StreamDef, left: Sequence[tuple[str, str]], since: int) -> None:
        """Those below may be behind the instant from which on the new publisher holds the stream:
        until they are not, the old one does."""
        with self._leaving:
            kept = [*self._left(), *((stream.name, at, name, since) for at, name in left)]
            self._site.engine.store.write_note(_LEFT, json.dumps(kept).encode())
        self.release()

    def _left(self) -> list[tuple[str, str, str, int]]:
        note = self._site.engine.store.note(_LEFT)
        return [] if note is None else [(s, a, n, i) for s, a, n, i in json.loads(note)]

    def release(self) -> None:
        """Give back what was left, and is not needed any more."""
        over: list[tuple[str, str]] = []
        with self._leaving:
            for name, at, publication, since in self._left():
                stream = self._site.catalog.find(name)
                is_here = isinstance(stream, StreamDef)
                held = self._routing.held_from(stream) if is_here else FOREVER  # type: ignore[arg-type]
                if held is not None and held >= since and publication not in self._releasing:
                    over.append((at, publication))
                    self._releasing.add(publication)
        if over:  # not on the caller's thread: who is away may not answer for long
            threading.Thread(target=self._release, args=(over,), daemon=True).start()

    def _release(self, over: Sequence[tuple[str, str]]) -> None:
        with suppress(*FAILURES):  # at the next start, then
            self.give_back(over)
            given = {publication for _, publication in over}
            with self._leaving:
                kept = [x for x in self._left() if x[2] not in given]
                self._site.engine.store.write_note(_LEFT, json.dumps(kept).encode())
                self._releasing -= given
