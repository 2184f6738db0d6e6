"""By which publications mirrors are fed: now, and from which instants on by which others.

Routes are written down; who reads a stream is the one writer of its routes. Several threads of this
node change them (who takes over, who moves, who wants more): each change is made of what is there.
It is a transaction of the book, which is always taken before the lock here: a fragment that moves
in has its routes written in the transaction that makes it stand.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from msgspec import structs

from thalweg.engine.site import Site
from thalweg.plan.catalog import StreamDef
from thalweg.plan.windows import BEGINNING, FOREVER
from thalweg.runtime.data.messages import MovedTo
from thalweg.runtime.data.routes import (
    Place,
    Route,
    after,
    decode_place,
    decode_routes,
    encode_routes,
)
from thalweg.runtime.network.mirrors.mirrored import home_of, publication_of, same_route

Routes = tuple[Route, ...]


class Routing:
    def __init__(self) -> None:
        self._site: Site | None = None
        self._lock = threading.RLock()
        self._routes: dict[str, Routes] = {}
        self._taking: dict[str, threading.Lock] = {}
        self._changing: dict[str, threading.RLock] = {}

    def attach(self, site: Site) -> None:
        self._site = site

    def taking(self, stream: StreamDef) -> threading.Lock:
        """Held while rows are taken: who has it sees how far a mirror has come."""
        with self._lock:
            return self._taking.setdefault(stream.name, threading.Lock())

    def changing(self, stream: str) -> threading.RLock:
        """Held while it is decided by which publications a mirror is fed; also by who asks its own
        publisher meanwhile, so that it is never asked for by who holds another one of it."""
        with self._lock:
            return self._changing.setdefault(stream.lower(), threading.RLock())

    # --- what there is

    def routes(self, stream: StreamDef) -> Routes:
        known = self._routes.get(stream.name)
        if known is not None:
            return known
        note = None if self._site is None else self._site.engine.store.note(_note(stream))
        if note is None:
            return (Route(publication_of(stream)),)
        with self._lock:  # who has written meanwhile knows better
            return self._routes.setdefault(stream.name, decode_routes(note))

    def place(self, stream: StreamDef) -> Place | None:
        """How far a mirror has come; None: nothing has come yet."""
        assert self._site is not None
        packed = self._site.engine.landing.resume_point(stream)
        return None if packed is None else decode_place(packed)

    def held_from(self, stream: StreamDef) -> int | None:
        """From where on this node, or anybody who has the stream from it, may ask for it again;
        None: nothing has come yet."""
        assert self._site is not None
        place, below = self.place(stream), self._site.engine.holds.least()
        return None if place is None else min(place.instant, below.get(stream.name, FOREVER))

    def ahead(self, stream: StreamDef) -> tuple[Routes, int]:
        """The route by which a mirror is fed now and those that follow, and how far it has come."""
        routes, place = self.routes(stream), self.place(stream)
        if place is None:
            return routes, BEGINNING
        names = [r.publication for r in routes]
        return routes[names.index(place.publication) :], place.instant

    # --- which nodes

    def publishers(self, stream: StreamDef) -> tuple[str, ...]:
        """All nodes from which a mirror is fed, and will be; the last one last."""
        return tuple(r.at or home_of(stream) for r in self.routes(stream))

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
        if following is not None and place.instant + following.continues > following.since:
            return following.at or home_of(stream)
        return self.node_of(stream, place.publication)

    def awaited(self, stream: StreamDef) -> str:
        """As `needed`; one that is to follow is waited for as soon as its instant has come."""
        place = self.place(stream)
        following = None if place is None else after(self.routes(stream), place.publication)
        if place is not None and following is not None and place.instant >= following.since:
            return following.at or home_of(stream)
        return self.needed(stream)

    def node_of(self, stream: StreamDef, publication: str) -> str:
        found = [r.at for r in self.routes(stream) if r.publication == publication]
        return (found[0] if found else None) or home_of(stream)

    def are_fed_by(self, publication: str, mirrors: Iterable[StreamDef]) -> bool:
        """Whether one of them is, or will be."""
        return any(r.publication == publication for s in mirrors for r in self.routes(s))

    # --- changes

    @contextmanager
    def _written(self) -> Iterator[None]:
        assert self._site is not None
        with self._site.engine.store.transaction(), self._lock:
            yield

    def change(self, stream: StreamDef, wanted: Callable[[Routes], Routes]) -> Routes:
        """Durable when it returns; gives the routes as they were."""
        with self._written():
            before = self.routes(stream)
            self.write(stream, wanted(before))
            return before

    def write(self, stream: StreamDef, routes: Routes) -> None:
        assert self._site is not None
        with self._written():
            self._site.engine.store.write_note(_note(stream), encode_routes(routes))
            self._routes[stream.name] = routes

    def add(self, stream: StreamDef, route: Route) -> None:
        """From an instant on, a mirror is fed by another publication."""
        self.change(stream, lambda routes: (*routes, route))

    def succeed(self, stream: StreamDef, route: Route, behind: Iterable[Route]) -> list[Route]:
        """From where a mirror has come on, it is fed by another publication, and then by those
        `behind`; gives the routes that it has left. It must not go on meanwhile."""
        with self._written():
            routes, place = self.routes(stream), self.place(stream)
            if place is None:  # as if it had been opened there
                kept: Routes = (structs.replace(same_route(route), since=BEGINNING),)
            else:
                kept = (*(r for r in routes if r.publication == place.publication), route, *behind)
            self.write(stream, kept)
        return [r for r in routes if r not in kept]

    def switch(self, stream: StreamDef, publication: str) -> tuple[list[Route], Route]:
        """A mirror has gone over to a publication: the routes before it are over."""
        with self._written():
            routes = self.routes(stream)
            place = [r.publication for r in routes].index(publication)
            self.write(stream, routes[place:])
        return list(routes[:place]), routes[place]

    def go_on_at(self, stream: StreamDef, old: str, moved: MovedTo) -> bool:
        """A publication goes on at another node from an instant on; whether that was news."""
        with self._written():
            routes = self.routes(stream)
            if any(r.publication == moved.publication for r in routes):
                return False
            route = structs.replace(
                same_route(routes[-1]),
                publication=moved.publication,
                since=moved.since,
                at=moved.at,
                continues=True,
            )
            place = [r.publication for r in routes].index(old) + 1
            self.write(stream, (*routes[:place], route, *routes[place:]))
            return True

    def forget(self, stream: StreamDef) -> None:
        assert self._site is not None
        with self._written():
            self._routes.pop(stream.name, None)
            self._taking.pop(stream.name, None)
            self._site.engine.store.delete_note(_note(stream))


def _note(stream: StreamDef) -> str:
    return f"routes/{stream.name}"
