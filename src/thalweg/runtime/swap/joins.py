"""Joins across nodes, as seen from one of them: those that were asked for here, and its part in
those of others. What happens is the protocol's affair (`adapt/swap`); this feeds it, hears it, and
counts what has gone where."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from thalweg.adapt.swap.messages import Began, Demand, Drop, Final, SinkGone, Submit, Took
from thalweg.adapt.swap.query import NEVER, SwapQuery
from thalweg.adapt.swap.settings import SwapSettings
from thalweg.engine.site import Site
from thalweg.engine.site.publications import Publications, needs_of
from thalweg.engine.sources.feed import Source
from thalweg.overlay.stack import Stack
from thalweg.plan.catalog import StreamDef
from thalweg.plan.windows import BEGINNING
from thalweg.runtime.driver.driver import Driver
from thalweg.runtime.network.directory import Directory
from thalweg.runtime.network.mirrors.mirrors import Mirrors
from thalweg.runtime.swap.definitions import JOINED, is_joined, query_of
from thalweg.runtime.swap.feeder import ANSWER_S, Feeder
from thalweg.runtime.swap.feeding import JoinedSource
from thalweg.runtime.swap.legs import swap_of

T = TypeVar("T")

LIVE = SwapSettings(
    batch_rows=128, window_rows=1024, pending_rows=1024, beat_us=100_000, managed=True
)


class Joins:
    """Over a driver whose stack has Swap. May be called from any thread."""

    def __init__(self, driver: Driver, directory: Directory, settings: SwapSettings = LIVE) -> None:
        self._driver, self._directory, self._settings = driver, directory, settings
        self._listeners: dict[str, Callable[[], None]] = {}
        self._addresses: dict[str, str] = {}  # of nodes that may be forgotten one day
        self.feeder: Feeder | None = None
        self._here: tuple[Site, Mirrors] | None = None  # once the node has begun
        driver.on("swap", self._told)

    def attach(self, site: Site, mirrors: Mirrors, publications: Publications) -> None:
        self._here = site, mirrors
        before = mirrors.dropped

        def dropped(mirror: str) -> None:
            before(mirror)
            if mirror.startswith(JOINED):
                self.drop(mirror.removeprefix(JOINED))

        mirrors.dropped = dropped
        self._directory.on_gone(self._gone)
        self.names()
        self._drop_unread()
        room = self._settings.pending_rows
        self.feeder = Feeder(self._driver, site, publications, room)

    @property
    def _site(self) -> Site:
        assert self._here is not None, "the node has not begun"
        return self._here[0]

    @property
    def _mirrors(self) -> Mirrors:
        assert self._here is not None, "the node has not begun"
        return self._here[1]

    def close(self) -> None:
        if self.feeder is not None:
            self.feeder.close()

    def source(self, mirror: StreamDef) -> Source:
        """What feeds a join's mirror."""
        return JoinedSource(mirror, self)

    def _told(self, value: object) -> None:
        if isinstance(value, Final):
            listener = self._listeners.get(value.query)
            if listener is not None:
                listener()
            return
        if isinstance(value, Began):
            self.names()  # while the sink is known
        if self.feeder is not None:
            self.feeder.wake()

    def _call(self, request: object) -> tuple[object, ...]:
        return self._driver.call("swap", request).result(ANSWER_S)

    def read(self, function: Callable[[Stack], T]) -> T:
        return self._driver.read(function)

    # --- joins that were asked for here

    def submit(self, query: SwapQuery, listener: Callable[[], None]) -> None:
        """Once; a query that stands goes on."""
        self._listeners[query.id] = listener
        self._call(Submit(query))

    def unheard(self, query: str) -> None:
        self._listeners.pop(query, None)

    def said(self, query: str, after: int) -> tuple[list[Final], int]:
        """Changes that have not landed behind an instant, and how far it is final."""

        def find(stack: Stack) -> tuple[list[Final], int]:
            state = swap_of(stack).queries.get(query)
            if state is None or state.sink is None:
                return [], NEVER
            finals = [f for upto, f in sorted(state.sink.untaken.items()) if upto > after]
            return finals, state.sink.said

        return self._driver.read(find)

    def took(self, query: str, upto: int) -> None:
        self._call(Took(query, upto))

    def demand(self, mirror: StreamDef, query: str) -> None:
        """If something waits for the join, its streams' homes may have something to promise."""
        if self._here is None:
            return
        asked = self._mirrors.demanded.get(mirror.name, BEGINNING)
        _, held_up_at = needs_of(self._site, mirror.name, asked)
        if held_up_at is not None:
            self._call(Demand(query, held_up_at))

    def waits(self, query: SwapQuery) -> str:
        """For whom a join waits; nothing, if all take part."""

        def find(stack: Stack) -> list[str]:
            state = swap_of(stack).queries.get(query.id)
            started = {} if state is None else state.lifecycle.started
            return [site for site in query.sites if site not in started]

        names = self.names()
        away = [names.get(s, s) for s in query.sites if not self._directory.is_up(names.get(s, s))]
        if away:
            return f"{', '.join(away)} can't be reached, and takes part in the join"
        missing = [names.get(s, s) for s in self._driver.read(find)]
        return f"{', '.join(missing)} has not begun its part of the join" if missing else ""

    def drop(self, query: str) -> None:
        """Nothing reads a join any more."""
        self.unheard(query)

        def find(stack: Stack) -> SwapQuery | None:
            state = swap_of(stack).queries.get(query)
            return None if state is None else state.query

        found = self._driver.read(find)
        if found is not None:
            self._mirrors.give_back(self.publications_of(found))
            self._call(Drop(query))

    def publications_of(self, query: SwapQuery) -> list[tuple[str, str]]:
        """What is kept for it: homes and publications."""
        names, homes = self.names(), query.annotated.delegated
        pairs = zip(homes, query.sources, strict=True)
        return [(names.get(site, site), source) for (site,), source in pairs]

    def _drop_unread(self) -> None:
        """After a crash between the end of a join's mirror and that of the join."""
        kept = {query_of(s).id for s in self._site.catalog.streams() if is_joined(s)}
        own = self._driver.address

        def find(stack: Stack) -> list[str]:
            queries = swap_of(stack).queries
            return [id_ for id_, state in queries.items() if state.query.sink == own]

        for query in self._driver.read(find):
            if query not in kept:
                self.drop(query)

    def names(self) -> dict[str, str]:
        """Of nodes, by their addresses."""
        for node in self._directory.nodes():
            self._addresses[node.name] = node.address
        return {address: name for name, address in self._addresses.items()}

    def _gone(self, node: str) -> None:
        address = self._addresses.get(node)
        if address is not None:
            self._call(SinkGone(address))
