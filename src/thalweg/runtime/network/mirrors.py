"""Streams of other nodes at this one: made when a query needs them, dropped when none does."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from thalweg.cql.bind.dependencies import dependents
from thalweg.engine.shared.registering import Past
from thalweg.engine.site import Site, SiteError
from thalweg.engine.site.publications import MIRRORS, is_mirror, needs_of
from thalweg.engine.sources.feed import Source
from thalweg.plan.catalog import QueryDef, StreamDef, ViewDef
from thalweg.plan.nodes import base_streams
from thalweg.plan.wanted_rows import wanted_rows
from thalweg.plan.windows import BEGINNING
from thalweg.runtime.data.client import DataClient, NotServed, Unreachable
from thalweg.runtime.data.messages import Close, Open, Opened
from thalweg.runtime.data.mirror import Lost, MirrorSource
from thalweg.runtime.data.profiles import Where, covers, merged, where_of
from thalweg.runtime.data.routes import (
    Place,
    Route,
    after,
    decode_place,
    decode_routes,
    encode_routes,
)
from thalweg.runtime.data.statements import mirror_text, quoted, reach_of
from thalweg.runtime.network.definitions import stream_of
from thalweg.runtime.network.directory import Defined, Directory, NodeInfo, NotKnown, node_of

log = logging.getLogger(__name__)

_NUMBERS = "mirrors"  # of the subscriptions that this node has opened
AGAIN = "fragment/again/"  # names of streams that are read from the past on begin like this
_CLOSING = "closing"  # a note of those that their publishers have not heard the end of


class NodeAway(SiteError):
    """A node that is needed now does not answer."""


@dataclass(frozen=True, slots=True)
class Mirrored:
    """Statements that make streams of others one's own, and how far those have come."""

    texts: tuple[str, ...]
    pasts: Mapping[str, Past]
    opened: tuple[tuple[str, str], ...]  # home and publication


def home_of(mirror: StreamDef) -> str:
    assert mirror.source is not None
    return mirror.source.removeprefix(MIRRORS)


def publication_of(mirror: StreamDef) -> str:
    return dict(mirror.options)["publication"]


@dataclass
class _Wanted:
    """Of one stream: which rows are wanted, and how much of the past."""

    where: Where | None = ()
    reach: int | None = 0

    def add(self, definition: QueryDef | ViewDef, stream: StreamDef) -> None:
        plan = definition.plan
        if self.where is not None:
            # Nobody knows what will be asked of a view.
            rows = None if isinstance(definition, ViewDef) else wanted_rows(plan, stream.name)
            self.where = merged(self.where, where_of(stream, rows))
        reach = reach_of(plan, stream.name)
        self.reach = None if reach is None or self.reach is None else max(self.reach, reach)


def _note(stream: StreamDef) -> str:
    return f"routes/{stream.name}"


def _lost(stream: StreamDef) -> str:
    return f"lost/{stream.name}"


class Mirrors:
    """`connect` gives a connection to a publisher's address, with the options for that node."""

    def __init__(
        self,
        directory: Directory,
        connect: Callable[..., DataClient],
        options: Callable[[NodeInfo], Mapping[str, Any]] = lambda _: {},
    ) -> None:
        self._directory, self._connect_to, self._options = directory, connect, options
        self._site: Site | None = None
        self._closing = threading.Lock()
        self._routing = threading.RLock()
        self._routes: dict[str, tuple[Route, ...]] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._sources: dict[str, MirrorSource] = {}
        # Instants for which readers of this node's fragments wait, by the stream they wait for.
        self.demanded: Mapping[str, int] = {}
        # Told of mirrors that go, and of those whose publishers say that they do not have them.
        self.dropped: Callable[[str], None] = lambda _: None
        self.unserved: Callable[[str], None] = lambda _: None

    def attach(self, site: Site) -> None:
        self._site = site
        for stream in site.catalog.streams():
            note = site.engine.store.note(_lost(stream))
            if note is not None:
                site.lost[stream.name] = note.decode()

    def source(self, stream: StreamDef) -> Source:
        """What feeds a mirror."""
        home = home_of(stream)
        made = MirrorSource(
            stream,
            home,
            lambda: self.routes(stream),
            lambda publication: self._connect(stream, publication),
            lambda: self._needs(stream.name),
            lambda publication: self._switched(stream, publication),
            self._taking(stream),
            lambda: self.unserved(stream.name),
        )
        with self._routing:
            self._sources[stream.name] = made
        return made

    def _taking(self, stream: StreamDef) -> threading.Lock:
        """Held while rows are taken: who has it sees how far a mirror has come."""
        with self._routing:
            return self._locks.setdefault(stream.name, threading.Lock())

    def _needs(self, stream: str) -> tuple[int, int | None]:
        if self._site is None:
            return BEGINNING, None
        return needs_of(self._site, stream, self.demanded.get(stream, BEGINNING))

    @property
    def _attached(self) -> Site:
        assert self._site is not None, "the node has not begun"
        return self._site

    def connect(self, home: str) -> DataClient:
        """Raises Unreachable."""
        try:
            node = node_of(self._directory, home)
            return self._connect_to(node.data, **self._options(node))
        except NotKnown as error:
            raise Unreachable(str(error)) from None

    def _connect(self, stream: StreamDef, publication: str) -> DataClient:
        if self._site is None:  # nobody knows yet from where it is read
            raise Unreachable("this node is about to begin")
        if stream.name in self._site.lost:
            raise Lost(self._site.lost[stream.name])
        return self.connect(self._node_of(stream, publication))

    def lose(self, stream: StreamDef, why: str) -> None:
        """Nothing will come any more, and nobody can say what would have."""
        self._attached.engine.store.write_note(_lost(stream), why.encode())
        self._attached.lost[stream.name] = why

    # --- by which publications they are fed

    def routes(self, stream: StreamDef) -> tuple[Route, ...]:
        with self._routing:
            if stream.name not in self._routes:
                note = None if self._site is None else self._site.engine.store.note(_note(stream))
                if note is None:
                    return (Route(publication_of(stream)),)
                self._routes[stream.name] = decode_routes(note)
            return self._routes[stream.name]

    def home(self, stream: StreamDef) -> str:
        """The node from which a mirror is fed, or will be next."""
        return self.routes(stream)[-1].at or home_of(stream)

    def needed(self, stream: StreamDef) -> str:
        """The node that has to speak next: the one from which a mirror is fed, or its successor, if
        all has been read of the former."""
        routes, place = self.routes(stream), self.place(stream)
        if place is None:
            return routes[0].at or home_of(stream)
        following = after(routes, place.publication)
        if following is not None and place.instant > following.since:
            return following.at or home_of(stream)
        return self._node_of(stream, place.publication)

    def _node_of(self, stream: StreamDef, publication: str) -> str:
        found = [r.at for r in self.routes(stream) if r.publication == publication]
        return (found[0] if found else None) or home_of(stream)

    def reroute(self, stream: StreamDef, route: Route) -> None:
        """From an instant on, a mirror is fed by another publication."""
        self._write_routes(stream, (*self.routes(stream), route))

    def place(self, stream: StreamDef) -> Place | None:
        """How far a mirror has come; None: nothing has come yet."""
        packed = self._attached.engine.landing.resume_point(stream)
        return None if packed is None else decode_place(packed)

    def succeed(self, stream: StreamDef, route: Route) -> None:
        """Who feeds a mirror is gone: from where it has come on, it is fed by another publication,
        which says from `since` on what the old one would have said."""
        with self._taking(stream), self._routing:
            routes, place = self.routes(stream), self.place(stream)
            kept: tuple[Route, ...]
            if place is None:  # as if it had been opened there
                kept = (Route(route.publication, route.where, at=route.at),)
            else:
                kept = (*(r for r in routes if r.publication == place.publication), route)
            self._write_routes(stream, kept)
            source = self._sources.get(stream.name)
        if source is not None:
            source.look_again()
        left = [r for r in routes if r not in kept]
        self.give_back([(r.at or home_of(stream), r.publication) for r in left])

    def _write_routes(self, stream: StreamDef, routes: tuple[Route, ...]) -> None:
        with self._routing:
            self._attached.engine.store.write_note(_note(stream), encode_routes(routes))
            self._routes[stream.name] = routes

    def _switched(self, stream: StreamDef, publication: str) -> None:
        routes = self.routes(stream)
        place = [r.publication for r in routes].index(publication)
        self._write_routes(stream, routes[place:])
        self.give_back([(r.at or home_of(stream), r.publication) for r in routes[:place]])

    # --- making them

    def open(
        self, definitions: Iterable[QueryDef | ViewDef], defined: Mapping[str, Defined]
    ) -> Mirrored:
        """Subscribe to what these read of other nodes and is not here yet. Raises NodeAway."""
        wanted: dict[str, _Wanted] = {}
        for definition in definitions:
            for stream in base_streams(definition.plan):
                key = stream.name.lower()
                if key in defined:
                    wanted.setdefault(key, _Wanted()).add(definition, stream)
        texts: list[str] = []
        pasts: dict[str, Past] = {}
        opened: list[tuple[str, str]] = []
        for key, want in wanted.items():
            entry, here = defined[key], self._attached.catalog.find(key)
            where = want.where
            if here is not None:
                if not isinstance(here, StreamDef) or not is_mirror(here):
                    continue
                routes = self.routes(here)
                if covers(routes[-1].where, where):
                    continue
                where = merged(routes[-1].where, where)
            try:
                answer = self._subscribe(entry, want.reach, where)
            except (Unreachable, NotServed) as error:
                self.give_back(opened)
                raise NodeAway(
                    f"{entry.name} is at node {entry.node}, which does not hand it out now "
                    f"({error}): submit again when it is there"
                ) from None
            pasts[entry.name] = answer.past
            if here is None:
                opened.append((entry.node, answer.publication))
                texts.append(mirror_text(stream_of(entry), entry.node, answer.publication))
                made = Route(answer.publication, where)
                self._write_routes(stream_of(entry), (made,))
            else:
                # Written down before anybody relies on it; if nobody does after all, more rows
                # than needed are sent.
                more = Route(answer.publication, where, answer.watermark)
                self._write_routes(here, (*routes, more))
        return Mirrored(tuple(texts), pasts, tuple(opened))

    def _subscribe(
        self, entry: Defined, reach: int | None, where: Where | None, since: int | None = None
    ) -> Opened:
        number = self._attached.engine.store.take_numbers(_NUMBERS, 1)
        client = self.connect(entry.node)
        try:
            asked = Open(entry.name, self._directory.me.name, number, reach, where, since)
            answer = client.ask(asked)
        finally:
            client.close()
        assert isinstance(answer, Opened)
        return answer

    def open_past(
        self, definition: QueryDef, defined: Mapping[str, Defined], since: int
    ) -> tuple[Mirrored, dict[str, StreamDef]]:
        """Subscribe to all that a query reads of other nodes, from an instant of the past on; and
        the streams that stand for it. They are for this query alone: mirrors that are there have
        come further, and have forgotten. Raises NodeAway."""
        texts: list[str] = []
        pasts: dict[str, Past] = {}
        opened: list[tuple[str, str]] = []
        streams: dict[str, StreamDef] = {}
        for stream in base_streams(definition.plan):
            entry = defined.get(stream.name.lower())
            if entry is None:  # it is at home here
                pasts[stream.name] = Past(since)
                continue
            want = _Wanted()
            want.add(definition, stream)
            try:
                answer = self._subscribe(entry, want.reach, want.where, since)
            except (Unreachable, NotServed) as error:
                self.give_back(opened)
                raise NodeAway(
                    f"{entry.name} is at node {entry.node}, which does not hand it out now "
                    f"({error})"
                ) from None
            opened.append((entry.node, answer.publication))
            number = answer.publication.rpartition(".")[2]
            own = replace(stream_of(entry), name=f"{AGAIN}{entry.name}.{number}")
            streams[stream.name] = own
            told = {"stream": entry.name}
            texts.append(mirror_text(own, entry.node, answer.publication, told))
            self._write_routes(own, (Route(answer.publication, want.where),))
            pasts[own.name] = answer.past
        return Mirrored(tuple(texts), pasts, tuple(opened)), streams

    # --- ending them

    def drop_unused(self) -> None:
        """Mirrors that nothing reads any more go, and their publishers are told."""
        site = self._attached
        unused = [s for s in site.catalog.streams() if is_mirror(s) and not _is_read(site, s)]
        for stream in unused:
            kind = "RELATION" if stream.is_relation else "STREAM"
            site.execute(f"DROP {kind} {quoted(stream.name)}")
        self.give_back(
            [(r.at or home_of(s), r.publication) for s in unused for r in self.routes(s)]
        )
        for stream in unused:
            with self._routing:
                self._routes.pop(stream.name, None)
                self._locks.pop(stream.name, None)
                self._sources.pop(stream.name, None)
                site.engine.store.delete_note(_note(stream))
                site.engine.store.delete_note(_lost(stream))
            site.lost.pop(stream.name, None)
            self.dropped(stream.name)

    def give_back(self, opened: Iterable[tuple[str, str]]) -> None:
        """Tell publishers that their publications are not read any more, now or later."""
        with self._closing:
            waiting = {*self._waiting(), *opened}
            left = [pair for pair in sorted(waiting) if not self._close(*pair)]
            if waiting:
                note = json.dumps(left).encode()
                self._attached.engine.store.write_note(_CLOSING, note)

    def _waiting(self) -> list[tuple[str, str]]:
        note = self._attached.engine.store.note(_CLOSING)
        return [] if note is None else [(home, name) for home, name in json.loads(note)]

    def _close(self, home: str, publication: str) -> bool:
        try:
            client = self.connect(home)
            try:
                client.ask(Close(publication))
            finally:
                client.close()
        except Unreachable:
            return False
        except NotServed as error:
            log.warning("%s at %s: %s", publication, home, error)
        return True


def _is_read(site: Site, stream: StreamDef) -> bool:
    return bool(dependents(stream, site.catalog))
