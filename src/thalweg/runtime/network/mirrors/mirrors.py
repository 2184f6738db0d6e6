"""Streams of other nodes at this one: made when a query needs them, dropped when none does.

| what | where |
|---|---|
| by which publications a mirror is fed | `routing.py` |
| how those are opened and given back | `subscribing.py` |
| mirrors that begin, or get more | `obtaining.py` |
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from msgspec import structs

from thalweg.cql.bind.dependencies import dependents
from thalweg.engine.shared.registering import Past
from thalweg.engine.site import Site
from thalweg.engine.site.authors import by_itself
from thalweg.engine.site.delays import Took
from thalweg.engine.site.publications import is_mirror, needs_of
from thalweg.engine.site.status import instant_words
from thalweg.engine.sources.feed import Source
from thalweg.plan.catalog import QueryDef, StreamDef, ViewDef
from thalweg.plan.windows import BEGINNING, FOREVER
from thalweg.runtime.data.client import DataClient, NotServed, Unreachable
from thalweg.runtime.data.messages import MovedTo, Opened
from thalweg.runtime.data.mirror import UNTIL, Lost, MirrorSource
from thalweg.runtime.data.profiles import Profile, everything
from thalweg.runtime.data.routes import Place, Route
from thalweg.runtime.data.statements import quoted
from thalweg.runtime.network.directory import Defined, Directory, NodeInfo
from thalweg.runtime.network.mirrors.mirrored import Mirrored, Wanted, home_of, route_instead
from thalweg.runtime.network.mirrors.obtaining import OPENING, Obtaining
from thalweg.runtime.network.mirrors.routing import Routes, Routing
from thalweg.runtime.network.mirrors.subscribing import Subscribing
from thalweg.runtime.network.moves.moved import Moved


class Mirrors:
    """`connect` gives a connection to a publisher's address, with the options for that node."""

    def __init__(
        self,
        directory: Directory,
        connect: Callable[..., DataClient],
        options: Callable[[NodeInfo], Mapping[str, Any]] = lambda _: {},
    ) -> None:
        self._routing = Routing()
        self._publishers = Subscribing(directory, self._routing, connect, options)
        self._site: Site | None = None
        self._lock = threading.Lock()
        self._sources: dict[str, MirrorSource] = {}
        # Instants for which readers of this node's fragments wait, by the stream they wait for.
        self.demanded: Mapping[str, int] = {}
        # Told of fragments that go on elsewhere.
        self.moved: Callable[[Moved], None] = lambda _: None
        # Told of mirrors that go, and of those whose publishers say that they do not have them.
        self.dropped: Callable[[str], None] = lambda _: None
        self.unserved: Callable[[str], None] = lambda _: None
        # Told of batches: the stream, the first instant of its rows, and up to where it goes.
        self.landed: Callable[[str, int | None, int], None] = lambda *_: None
        self.unserved_here: set[str] = set()  # base streams, until somebody else serves them

    def attach(self, site: Site) -> None:
        self._site = site
        self._routing.attach(site)
        self._publishers.attach(site)
        self._obtaining = Obtaining(site, self._routing, self._publishers)
        site.engine.holds.write(OPENING, {})  # as a crash may have left them
        for stream in site.catalog.streams():
            note = site.engine.store.note(_lost(stream))
            if note is not None:
                site.lost[stream.name] = note.decode()

    @property
    def trees(self) -> bool:
        """Whether streams may be had from others than their homes."""
        return self._publishers.trees

    @trees.setter
    def trees(self, trees: bool) -> None:
        self._publishers.trees = trees

    @property
    def _attached(self) -> Site:
        assert self._site is not None, "the node has not begun"
        return self._site

    # --- how rows come

    def source(self, stream: StreamDef) -> Source:
        """What feeds a mirror."""
        made = MirrorSource(
            stream,
            home_of(stream),
            lambda: self.routes(stream),
            lambda publication: self._connect(stream, publication),
            lambda: self._needs(stream),
            lambda publication: self._switched(stream, publication),
            self._routing.taking(stream),
            lambda: self._unserved(stream),
            lambda old, moved: self._gone_on(stream, old, moved),
            lambda took: self._took(stream, took),
            lambda first, upto: self.landed(stream.name, first, upto),
            lambda publication: self._over(stream, publication),
            lambda publication: self._routing.node_of(stream, publication),
        )
        with self._lock:
            self._sources[stream.name] = made
        return made

    def _unserved(self, stream: StreamDef) -> None:
        self.unserved_here.add(stream.name)
        self.unserved(stream.name)

    def _over(self, stream: StreamDef, publication: str) -> None:
        """Nothing will come any more: who publishes it need not go on."""
        self.give_back([(self._routing.node_of(stream, publication), publication)])

    def has_ended(self, stream: StreamDef) -> bool:
        """Whether it is the old track of a move (PTLB) in which nothing is old any more: its query
        still has it, empty, and nobody publishes it."""
        if UNTIL not in dict(stream.options):
            return False
        place = self.place(stream)
        return place is not None and place.instant >= FOREVER

    def _took(self, stream: StreamDef, took: Took) -> None:
        if self._site is not None:
            self._site.delays.came(stream.name, took)

    def _needs(self, stream: StreamDef) -> tuple[int, int | None, int | None]:
        if self._site is None:
            return BEGINNING, None, None
        asked = self.demanded.get(stream.name, BEGINNING)
        return *needs_of(self._site, stream.name, asked), self.held_from(stream)

    def connect(self, home: str) -> DataClient:
        """Raises Unreachable."""
        return self._publishers.connect(home)

    def _connect(self, stream: StreamDef, publication: str) -> DataClient:
        if self._site is None:  # nobody knows yet from where it is read
            raise Unreachable("this node is about to begin")
        if stream.name in self._site.lost:
            raise Lost(self._site.lost[stream.name])
        return self.connect(self._routing.node_of(stream, publication))

    def lose(self, stream: StreamDef, why: str) -> None:
        """Nothing will come any more, and nobody can say what would have."""
        self._attached.engine.store.write_note(_lost(stream), why.encode())
        self._attached.lost[stream.name] = why

    # --- by which publications they are fed: `Routing` tells what is what

    def changing(self, stream: str) -> threading.RLock:
        return self._routing.changing(stream)

    def routes(self, stream: StreamDef) -> Routes:
        return self._routing.routes(stream)

    def place(self, stream: StreamDef) -> Place | None:
        return self._routing.place(stream)

    def held_from(self, stream: StreamDef) -> int | None:
        return self._routing.held_from(stream)

    def publishers(self, stream: StreamDef) -> tuple[str, ...]:
        return self._routing.publishers(stream)

    def home(self, stream: StreamDef) -> str:
        return self._routing.home(stream)

    def needed(self, stream: StreamDef) -> str:
        return self._routing.needed(stream)

    def awaited(self, mirror: StreamDef) -> str:
        return self._routing.awaited(mirror)

    def begin_with(self, stream: StreamDef, route: Route) -> None:
        """A mirror that is about to stand is fed by this publication."""
        self._routing.write(stream, (route,))

    def reroute(self, stream: StreamDef, route: Route, moved: Moved) -> None:
        """From an instant on, a mirror is fed by another publication."""
        with self._attached.engine.store.transaction():
            self.moved(moved)
            self._routing.add(stream, route)

    def _gone_on(self, stream: StreamDef, old: str, moved: MovedTo) -> None:
        """Who feeds a mirror has told that from an instant on another node does."""
        with self._attached.engine.store.transaction():
            if self._routing.go_on_at(stream, old, moved):
                self.moved(Moved(self._routing.node_of(stream, old), old, moved.at))

    def succeed(self, stream: StreamDef, route: Route, behind: Sequence[Route] = ()) -> None:
        """Who feeds a mirror is gone: from where it has come on, it is fed by another publication,
        which says from `since` on what the old one would have said; and then by those `behind`."""
        with self._routing.taking(stream):
            left = self._routing.succeed(stream, route, behind)
        with self._lock:
            source = self._sources.get(stream.name)
        if source is not None:
            source.look_again()
        self._publishers.left(stream, left, BEGINNING)

    def _switched(self, stream: StreamDef, publication: str) -> None:
        left, route = self._routing.switch(stream, publication)
        self._publishers.left(stream, left, route.since)

    # --- making them: `Obtaining` tells what is what

    def opened(
        self, definitions: Iterable[QueryDef | ViewDef], defined: Mapping[str, Defined]
    ) -> AbstractContextManager[Mirrored]:
        return self._obtaining.opened(definitions, defined)

    def open_past(
        self, definition: QueryDef, defined: Mapping[str, Defined], since: int
    ) -> tuple[Mirrored, dict[str, StreamDef]]:
        return self._obtaining.open_past(definition, defined, since)

    def begin(self, entry: Defined, profile: Profile) -> tuple[str, Past]:
        return self._obtaining.begin(entry, profile)

    def widen(self, mirror: StreamDef, entry: Defined, profile: Profile) -> Past | None:
        return self._obtaining.widen(mirror, entry, profile)

    def subscribed(self, entry: Defined, want: Wanted) -> Opened:
        """Have a stream kept at its home for this node, though no mirror of it is here. Raises
        NodeAway."""
        return self._publishers.subscribed(entry, want, held=False)

    # --- from one publisher to another

    def rehang(self, mirror: StreamDef, entry: Defined, to: str) -> None:
        """From an instant on that the new publisher chooses, a mirror is fed by it; up to there, by
        the one that has fed it so far. Raises Unreachable, NotServed."""
        with self._routing.changing(entry.name):
            routes = self._routing.routes(mirror)
            last = routes[-1]
            answer = self._publishers.subscribe(entry, Wanted(last.profile), at=to)
            self._routing.add(mirror, route_instead(mirror, last, answer, to, answer.watermark))

    def rehang_alone(self, mirror: StreamDef, entry: Defined, to: str) -> None:
        """Who feeds a mirror is gone: from where it has come on, it is fed by another node, which
        has held the stream for that. Raises Unreachable, NotServed."""
        with self._routing.changing(entry.name):
            with self._routing.taking(mirror):
                routes, place = self._routing.routes(mirror), self._routing.place(mirror)
            if place is None:
                raise NotServed("nothing has come yet, so that only the home can go on", later=True)
            gone = self._routing.awaited(mirror)
            # Others that are to follow stand, unless they are at the same node.
            behind = routes[[r.publication for r in routes].index(place.publication) + 1 :]
            left = [r for r in behind if (r.at or home_of(mirror)) == gone]
            last = (
                left[-1] if left else next(r for r in routes if r.publication == place.publication)
            )
            answer = self._publishers.subscribe(entry, Wanted(last.profile), place.instant, to)
            if answer.watermark != place.instant:
                self._publishers.give_back([(to, answer.publication)])
                begins, wanted = (_said(mirror, i) for i in (answer.watermark, place.instant))
                raise NotServed(f"it would begin at {begins}, not at {wanted}")
            made = route_instead(mirror, last, answer, to, place.instant)
            self.succeed(mirror, made, [r for r in behind if r not in left])

    def add_columns(self, stream: StreamDef, known: StreamDef) -> None:
        """What a stream has got at home since it is mirrored, comes when a query wants it."""
        added = known.fields[len(stream.fields) :]
        if not added or known.fields[: len(stream.fields)] != stream.fields:
            return
        kind = "RELATION" if stream.is_relation else "STREAM"
        texts = [
            f"ALTER {kind} {quoted(stream.name)} ADD COLUMN {quoted(f.name)} {f.type}"
            for f in added
        ]
        before = everything(stream).columns
        self._routing.change(
            stream,
            lambda routes: tuple(  # as older versions wrote them
                structs.replace(r, columns=before) if r.columns is None else r for r in routes
            ),
        )
        with by_itself():
            self._attached.execute("; ".join(texts))

    # --- ending them

    def drop_unused(self) -> None:
        """Mirrors that nothing reads any more go, and their publishers are told."""
        site = self._attached
        unused = []
        for stream in site.catalog.streams():
            # One that is being changed is about to be read.
            if is_mirror(stream) and (lock := self.changing(stream.name)).acquire(blocking=False):
                try:
                    if not _is_read(site, stream):
                        kind = "RELATION" if stream.is_relation else "STREAM"
                        site.execute(f"DROP {kind} {quoted(stream.name)}")
                        unused.append(stream)
                finally:
                    lock.release()
        self.give_back(
            [(r.at or home_of(s), r.publication) for s in unused for r in self.routes(s)]
        )
        for stream in unused:
            with self._lock:
                self._sources.pop(stream.name, None)
            self._routing.forget(stream)
            site.engine.store.delete_note(_lost(stream))
            site.lost.pop(stream.name, None)
            self.dropped(stream.name)

    def give_back(self, opened: Iterable[tuple[str, str]]) -> None:
        """Tell publishers that their publications are not read any more, now or later."""
        self._publishers.give_back(opened)

    def release(self) -> None:
        """Give back what was left, and is not needed any more."""
        self._publishers.release()


def _said(stream: StreamDef, instant: int) -> str:
    return instant_words(instant, stream.resolution_us, stream.timestamp_type.is_temporal)


def _lost(stream: StreamDef) -> str:
    return f"lost/{stream.name}"


def _is_read(site: Site, stream: StreamDef) -> bool:
    return bool(dependents(stream, site.catalog))
