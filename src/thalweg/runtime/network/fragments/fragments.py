"""Fragments that other nodes compute for this one.

They are read like streams of other nodes: a fragment is published by an internal query, and its
reader has a mirror of it. A fragment may itself read fragments, so that opening one opens a tree of
them; if a node refuses its part, what was opened is given back.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import msgspec

from thalweg.cql import compile_script
from thalweg.engine.shared.registering import Past
from thalweg.engine.site import Site, SiteError, Unknown
from thalweg.engine.site.publications import is_mirror
from thalweg.engine.site.status import instant_words
from thalweg.plan.catalog import StreamDef
from thalweg.plan.cutting import part_schema
from thalweg.plan.nodes import Node, Scan, transform
from thalweg.plan.travelling import encode_plan
from thalweg.plan.windows import BEGINNING
from thalweg.runtime.data.client import DataClient, NotServed, Unreachable
from thalweg.runtime.data.fragments import (
    Fragment,
    Input,
    digest,
    fragment_publication,
    inlined,
    stream_name,
    whole_reach,
)
from thalweg.runtime.data.messages import Move, Opened, OpenFragment
from thalweg.runtime.data.routes import Route
from thalweg.runtime.data.statements import mirror_text
from thalweg.runtime.network.mirrors.mirrored import NodeAway, first_of
from thalweg.runtime.network.mirrors.mirrors import Mirrors
from thalweg.runtime.network.moves.moved import Moved

log = logging.getLogger(__name__)

FRAGMENTS = "fragments"  # that this node has opened
_OPENING = "opening"  # a note of those that nothing of this node reads yet
_OPEN_WITHIN_S = 60.0  # others may have to be asked in turn


@dataclass(frozen=True, slots=True)
class Assembled:
    """A fragment's plan over streams that this node has, or will have by `texts`."""

    plan: Node
    texts: tuple[str, ...]
    pasts: Mapping[str, Past]
    opened: tuple[tuple[str, str], ...]  # home and publication
    shared: tuple[str, ...]  # mirrors that were there


class Succeeding(Protocol):
    """What becomes of fragments when their nodes go."""

    def follow(self, key: str, at: str, fragment: Fragment) -> None:
        """Read a fragment of a node; once it returns, its streams are held. Raises NodeAway."""

    def unfollow(self, key: str) -> None: ...


class Nobody:
    """A node without protocols waits for those that are gone."""

    def follow(self, key: str, at: str, fragment: Fragment) -> None: ...

    def unfollow(self, key: str) -> None: ...


class Fragments:
    """Those that other nodes compute for this one."""

    def __init__(
        self, me: str, site: Site, mirrors: Mirrors, succession: Succeeding | None = None
    ) -> None:
        self._me, self._site, self._mirrors = me, site, mirrors
        self._succession: Succeeding = succession or Nobody()
        self._opening = threading.Lock()

    # --- what others compute

    @contextmanager
    def assembled(self, fragment: Fragment, *, complete: bool = False) -> Iterator[Assembled]:
        """With everything that it reads of others. Raises NodeAway, SiteError; if what is done with
        it fails, all is given back."""
        streams: dict[str, StreamDef] = {}
        texts: list[str] = []
        pasts: dict[str, Past] = {}
        opened: list[tuple[str, str]] = []
        shared: list[str] = []
        followed: list[str] = []
        try:
            for given in fragment.inputs:
                stream = self.standing(given)
                if stream is not None:
                    shared.append(stream.name)
                    first = first_of(stream)
                    if self._site.engine.watermark(stream.name) < first:
                        pasts[stream.name] = Past(first, BEGINNING, first)
                else:
                    number = self._site.engine.store.take_numbers(FRAGMENTS, 1)
                    publication = fragment_publication(given.fragment, self._me, number)
                    opened.append((given.at, publication))
                    self._note(add=[(given.at, publication)])
                    followed.append(self._follow(given, number))
                    answer = self._ask(given, number, complete)
                    text = _mirror_text(given, number, answer)
                    (stream,) = compile_script(text).catalog.streams()
                    texts.append(text)
                    since = BEGINNING if stream.is_relation else answer.watermark
                    pasts[stream.name] = Past(answer.watermark, since, answer.watermark)
                streams[given.name] = stream
            plan = with_streams(fragment.node, streams)
            yield Assembled(plan, tuple(texts), pasts, tuple(opened), tuple(shared))
        except BaseException:
            self._mirrors.give_back(opened)
            self._note(remove=opened)
            for key in followed:
                self.forget(key)
                self._succession.unfollow(key)
            raise
        self._note(remove=opened)

    def _follow(self, given: Input, number: int) -> str:
        """The fragment is written down, and what it is made of is held, before it begins."""
        key = stream_name(given.fragment, given.at, number)
        self._write(key, given.fragment)
        if given.at != self._me:
            self._succession.follow(key, given.at, given.fragment)
        return key

    # --- what is read

    def read(self) -> Iterator[tuple[str, tuple[StreamDef, Fragment]]]:
        """By the names of their mirrors, those that others compute, as they were asked for."""
        for stream in self._site.catalog.streams():
            note = self._site.engine.store.note(_read(stream.name)) if is_mirror(stream) else None
            if note is not None:
                yield stream.name, (stream, msgspec.msgpack.decode(note, type=Fragment))

    def follow_later(self, key: str, fragment: Fragment) -> None:
        """What a mirror reads is written down; `Succeeding` finds it there."""
        self._write(key, fragment)

    def _write(self, key: str, fragment: Fragment) -> None:
        self._site.engine.store.write_note(_read(key), msgspec.msgpack.encode(fragment))

    def forget(self, key: str) -> None:
        self._site.engine.store.delete_note(_read(key))

    def _ask(self, given: Input, number: int, complete: bool, since: int | None = None) -> Opened:
        request = OpenFragment(given.fragment, self._me, number, complete, since)
        try:
            client: DataClient = self._mirrors.connect(given.at)
            try:
                answer = client.ask(request, within_s=_OPEN_WITHIN_S)
            finally:
                client.close()
        except Unreachable as error:
            raise NodeAway(
                f"node {given.at}, which is to compute a part of it, does not answer ({error}): "
                "submit again when it is there"
            ) from None
        except NotServed as error:
            kind = NodeAway if error.later else SiteError
            raise kind(f"node {given.at} refuses its part: {error}") from None
        assert isinstance(answer, Opened)
        return answer

    def standing(self, given: Input) -> StreamDef | None:
        """A mirror of an equal fragment that a query may share which begins now: both begin at the
        same instant, or its windows have been filled since it began."""
        wanted = digest(given.fragment)
        for stream in self._site.catalog.streams():
            if not is_mirror(stream) or self._mirrors.home(stream) != given.at:
                continue
            options = dict(stream.options)
            if options.get("fragment") != wanted:
                continue
            now, first = self._site.engine.watermark(stream.name), first_of(stream)
            if now <= first:
                return stream
            reach = whole_reach(given.fragment)
            # What a query holds at its start is new to it: a stream that goes on does not say it.
            if reach is None or given.fragment.from_beginning or not stream.is_relation:
                continue
            if first <= BEGINNING or now >= first + reach:
                return stream
        return None

    def move(self, asked: Move) -> None:
        """Have a fragment computed at another node from an instant on; up to there its rows come
        from the old one. Raises NodeAway, SiteError."""
        for stream in self._site.catalog.streams():
            if is_mirror(stream) and self._mirrors.home(stream) == asked.publisher:
                route = self._mirrors.routes(stream)[-1]
                if route.publication == asked.publication:
                    break
        else:
            return  # nothing reads it any more
        number = self._site.engine.store.take_numbers(FRAGMENTS, 1)
        publication = fragment_publication(asked.fragment, self._me, number)
        opened = [(asked.to, publication)]
        self._note(add=opened)
        try:
            answer = self._ask(Input("", asked.to, asked.fragment), number, True)
            more = Route(answer.publication, None, answer.watermark, asked.to)
            moved = Moved(asked.publisher, asked.publication, asked.to, asked.fragment)
            self._mirrors.reroute(stream, more, moved)
        except BaseException:
            self._mirrors.give_back(opened)
            raise
        finally:
            self._note(remove=opened)
        self._write(stream.name, asked.fragment)

    def last_known(self, stream: StreamDef) -> int:
        """The last instant of which all is known that a fragment has said; before it has said
        anything, the one at which it begins."""
        place = self._mirrors.place(stream)
        return first_of(stream) if place is None else place.instant - 1

    def begin_again(self, stream: StreamDef, fragment: Fragment) -> int:
        """Compute here, from the last instant that is known, what another node has computed; rows
        are read here from where the mirror is. Gives that instant. Raises NodeAway, SiteError;
        Unknown if the mirror was dropped meanwhile."""
        since = self.last_known(stream)
        whole = Fragment(encode_plan(inlined(fragment)))
        number = self._site.engine.store.take_numbers(FRAGMENTS, 1)
        opened = [(self._me, fragment_publication(whole, self._me, number))]
        self._note(add=opened)
        try:
            answer = self._ask(Input("", self._me, whole), number, True, since)
            if answer.watermark != since:
                told = stream.resolution_us, stream.timestamp_type.is_temporal
                begins, wanted = (instant_words(i, *told) for i in (answer.watermark, since))
                raise SiteError(f"it would begin at {begins}, and not at {wanted}")
            route = Route(answer.publication, None, since, self._me)
            self._mirrors.succeed(stream, route)
            if self._site.catalog.find(stream.name) is None:
                # Who dropped it has not seen the new route, or gives it back, too.
                raise Unknown("stream", stream.name, ())
        except BaseException:
            self._mirrors.give_back(opened)
            raise
        finally:
            self._note(remove=opened)
        self._write(stream.name, whole)
        return since

    # --- what was opened when this node went down

    def give_back_unread(self) -> None:
        """Fragments that were opened for something that has not come to stand."""
        waiting = self._noted()
        mirrors = [s for s in self._site.catalog.streams() if is_mirror(s)]
        read = {r.publication for s in mirrors for r in self._mirrors.routes(s)}
        unread = [(at, name) for at, name in waiting if name not in read]
        if unread:
            self._mirrors.give_back(unread)
        self._note(remove=waiting)

    def note_opening(
        self, add: list[tuple[str, str]] | None = None, remove: list[tuple[str, str]] | None = None
    ) -> None:
        """Publications (with their nodes) that nothing reads yet, or that something does now."""
        self._note(add, remove)

    def _noted(self) -> list[tuple[str, str]]:
        note = self._site.engine.store.note(_OPENING)
        return [] if note is None else [(at, name) for at, name in json.loads(note)]

    def _note(
        self, add: list[tuple[str, str]] | None = None, remove: list[tuple[str, str]] | None = None
    ) -> None:
        with self._opening:
            kept = {*self._noted(), *(add or [])} - {*(remove or [])}
            if add or remove:
                note = json.dumps(sorted(kept)).encode()
                self._site.engine.store.write_note(_OPENING, note)


def _read(key: str) -> str:
    return f"read/{key}"


def _mirror_text(given: Input, number: int, answer: Opened) -> str:
    schema = part_schema(given.fragment.node, stream_name(given.fragment, given.at, number))
    options = {"fragment": digest(given.fragment), "first": str(answer.watermark)}
    return mirror_text(schema, given.at, answer.publication, options)


def with_streams(plan: Node, streams: Mapping[str, StreamDef]) -> Node:
    """With this node's streams in the place of what others compute."""

    def change(node: Node) -> Node:
        if isinstance(node, Scan) and node.stream.name in streams:
            own = streams[node.stream.name]
            return Scan(own.placed() if node.stream.is_placed else own)
        return node

    return transform(plan, change)
