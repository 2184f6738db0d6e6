"""What queries need of other nodes and is not here yet: mirrors that begin, or get more.

A new subscription always begins at the stream's home, which alone has all of the past.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from msgspec import structs

from thalweg.engine.shared.registering import Past
from thalweg.engine.site import Site, WrongUse
from thalweg.engine.site.publications import is_mirror
from thalweg.plan.catalog import QueryDef, StreamDef, ViewDef
from thalweg.plan.nodes import base_streams
from thalweg.plan.windows import BEGINNING, FOREVER
from thalweg.runtime.data.messages import Opened
from thalweg.runtime.data.profiles import Profile
from thalweg.runtime.data.routes import Handed, Route
from thalweg.runtime.data.statements import mirror_text
from thalweg.runtime.network.definitions import stream_of
from thalweg.runtime.network.directory import Defined
from thalweg.runtime.network.labels.labels import base_of
from thalweg.runtime.network.mirrors.mirrored import (
    AGAIN,
    Mirrored,
    NodeAway,
    Wanted,
    first_of,
    first_route,
    home_of,
)
from thalweg.runtime.network.mirrors.routing import Routing
from thalweg.runtime.network.mirrors.subscribing import Subscribing

OPENING = "opening"  # among the holds


class Obtaining:
    def __init__(self, site: Site, routing: Routing, publishers: Subscribing) -> None:
        self._site, self._routing, self._publishers = site, routing, publishers

    @contextmanager
    def opened(
        self, definitions: Iterable[QueryDef | ViewDef], defined: Mapping[str, Defined]
    ) -> Iterator[Mirrored]:
        """Subscribe to what these read of other nodes and is not here yet; given back if they do
        not come to stand. Raises NodeAway, WrongUse."""
        wanted: dict[str, Wanted] = {}
        for definition in definitions:
            for stream in base_streams(definition.plan):
                key = stream.name.lower()
                if key in defined:
                    wanted.setdefault(key, Wanted()).add(definition, stream)
        with self._kept(wanted), ExitStack() as held:
            made = Mirrored([], {}, [])
            try:
                for key, want in wanted.items():
                    with self._routing.changing(key):
                        here = self._site.catalog.find(key)
                        if here is None:
                            self._open(defined[key], want, made)
                        elif isinstance(here, StreamDef) and is_mirror(here):
                            self._more_of(here, defined[key], want, made, held)
                yield made
            except BaseException:
                self._publishers.give_back(made.opened)
                raise

    @contextmanager
    def _kept(self, streams: Iterable[str]) -> Iterator[None]:
        """Inside, nothing goes of mirrors that are there: who looks at what they have begins with
        it."""
        engine = self._site.engine
        here = [d for s in streams if isinstance(d := self._site.catalog.find(s), StreamDef)]
        held = [d.name for d in here if is_mirror(d) and not d.is_relation]
        if not held:
            yield
            return
        with engine.exclusive():  # after a tick, or before
            there = {s: engine.store.inputs.complete_from(s, ()) for s in held}
            engine.holds.write(OPENING, there)
        try:
            yield
        finally:
            engine.holds.write(OPENING, {})

    def _open(self, entry: Defined, want: Wanted, made: Mirrored) -> None:
        answer, stream = self._publishers.subscribed(entry, want), stream_of(entry)
        made.opened.append((entry.node, answer.publication))
        # A table does not say how far time has come, and holds nobody up.
        first = BEGINNING if stream.is_table else answer.watermark
        told = {"first": str(first)} if first > BEGINNING else {}
        made.texts.append(mirror_text(stream, entry.node, answer.publication, told))
        made.pasts[entry.name] = replace(
            answer.past, first=first if stream.is_relation else BEGINNING
        )
        self._routing.write(stream, (first_route(answer, want),))

    def _more_of(
        self, here: StreamDef, entry: Defined, want: Wanted, made: Mirrored, held: ExitStack
    ) -> None:
        """A mirror that is there gets what it lacks for a query. Until that stands, the mirror does
        not go on: it must not be further than where the query begins. It is always the home that is
        asked: nobody else has all of the past."""
        routes, answer = self._routing.routes(here), None
        if self._is_enough(here, routes[0], want):
            first, now = first_of(here), self._site.engine.watermark(here.name)
            if now < first or here.is_relation:
                made.pasts[here.name] = Past(max(first, now), first=first)
            return
        if not self._is_enough(here, routes[-1], want):
            want = replace(want, profile=routes[-1].profile.merged(here, want.profile))
            answer = self._publishers.subscribed(entry, want)
        held.enter_context(self._routing.taking(here))
        if answer is not None:
            if self._since(here, answer) >= FOREVER:
                self._publishers.give_back([(entry.node, answer.publication)])
                raise WrongUse(
                    f"{entry.name} has ended, and what is here of it was for other queries: "
                    f"submit this one at node {entry.node}"
                )
            # Written down before anybody relies on it; if nobody does after all, more than needed
            # is sent.
            self.follow(here, answer, want, None)
        routes, _ = self._routing.ahead(here)
        if not self._is_enough(here, routes[0], want):
            to = next(r for r in routes[1:] if self._is_enough(here, r, want))
            assert to.past is not None
            made.pasts[here.name] = Past(to.since, to.past.complete_from, to.since, again=True)

    def follow(self, here: StreamDef, answer: Opened, want: Wanted, at: str | None) -> Route:
        """A mirror goes over to what was opened; `_taking` is held."""
        more = structs.replace(
            first_route(answer, want),
            since=self._since(here, answer),
            at=at,
            whole_from=None,
            hands_over=True,
        )
        self._routing.add(here, more)
        return more

    def _since(self, here: StreamDef, answer: Opened) -> int:
        """From where on another publication can feed a mirror. What was to come at its first
        instant comes by the first way."""
        routes, known = self._routing.ahead(here)
        has_first = first_of(here) > BEGINNING and not here.is_relation
        return max(known, routes[-1].since, answer.watermark, first_of(here) + has_first)

    def _is_enough(self, here: StreamDef, route: Route, want: Wanted) -> bool:
        """Whether a mirror has all that is wanted, once it is fed by a route."""
        if not route.profile.covers(here, want.profile):
            return False
        if here.is_relation or route.past is None:
            return True
        # What a class holds may be older than all that is here.
        of_class = want.reach is None and base_of(here.name) is not None
        if of_class and route.past.asked is not None:
            return False
        if route.hands_over and route != self._routing.ahead(here)[0][0]:
            return route.past.is_enough(want.reach, route.since)
        # What was handed over once may have gone meanwhile.
        engine = self._site.engine
        kept, now = engine.store.inputs.complete_from(here.name, ()), engine.watermark(here.name)
        is_kept = kept <= route.past.complete_from
        if of_class:
            return is_kept
        past = route.past if is_kept else Handed(0, kept)
        return past.is_enough(want.reach, now)

    def begin(self, entry: Defined, profile: Profile) -> tuple[str, Past]:
        """A statement that makes a mirror which begins now, and with nothing of the past. Raises
        NodeAway."""
        made, want = Mirrored([], {}, []), Wanted(profile)
        self._open(entry, want, made)
        return made.texts[0], made.pasts[entry.name]

    def widen(self, mirror: StreamDef, entry: Defined, profile: Profile) -> Past | None:
        """Have more sent, from now on, by who feeds a mirror; where that begins, if it is to come
        yet. Raises NodeAway."""
        routes = self._routing.routes(mirror)
        if routes[-1].profile.covers(mirror, profile):
            since = routes[-1].has_rows_from
            return Past(since) if self._site.engine.watermark(mirror.name) < since else None
        want, at = Wanted(routes[-1].profile.merged(mirror, profile)), self._routing.home(mirror)
        answer = self._publishers.subscribed(entry, want, at=at)
        named = None if at == home_of(mirror) else at
        with self._routing.taking(mirror):
            return Past(self.follow(mirror, answer, want, named).since)

    def open_past(
        self, definition: QueryDef, defined: Mapping[str, Defined], since: int
    ) -> tuple[Mirrored, dict[str, StreamDef]]:
        """Subscribe to all that a query reads of other nodes, from an instant of the past on; and
        the streams that stand for it. They are for this query alone: mirrors that are there have
        come further, and have forgotten. Raises NodeAway."""
        made, streams = Mirrored([], {}, []), dict[str, StreamDef]()
        for stream in base_streams(definition.plan):
            entry = defined.get(stream.name.lower())
            if entry is None:  # it is at home here
                made.pasts[stream.name] = Past(since)
                continue
            want = Wanted()
            want.add(definition, stream)
            try:
                answer = self._publishers.subscribed(entry, want, since)
            except NodeAway:
                self._publishers.give_back(made.opened)
                raise
            made.opened.append((entry.node, answer.publication))
            number = answer.publication.rpartition(".")[2]
            own = replace(stream_of(entry), name=f"{AGAIN}{entry.name}.{number}")
            streams[stream.name] = own
            told = {"stream": entry.name}
            made.texts.append(mirror_text(own, entry.node, answer.publication, told))
            self._routing.write(own, (first_route(answer, want),))
            made.pasts[own.name] = answer.past
        return made, streams
