"""The receiver of a fragment: it copies what the sender has, and lets it stand here.

What has come is in a folder of its own, so that a node that was interrupted fetches what it lacks.
The fragment reads its streams by mirrors of its own: it becomes one more reader of what its sender
reads, from the instant on up to which the sender has read.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import pyarrow as pa

from thalweg.adapt.handover.messages import MSLB, PTLB
from thalweg.adapt.moves.tracks import both, old_until
from thalweg.cql import compile_script
from thalweg.engine.shared.moving.adopt import (
    Arrived,
    adopt,
    begin_adopted,
    begins_anew,
    check_versions,
)
from thalweg.engine.shared.moving.manifest import StateManifest, StreamState
from thalweg.engine.shared.state.names import file_name
from thalweg.engine.site import Site
from thalweg.engine.site.publications import Publications, publication_name
from thalweg.engine.site.registry import Within
from thalweg.plan.catalog import StreamDef
from thalweg.plan.cutting import in_its_place, part_schema
from thalweg.plan.travelling import decode_plan
from thalweg.plan.windows import BEGINNING, FOREVER
from thalweg.runtime.data.client import DataClient
from thalweg.runtime.data.fragments import Fragment, digest, fragment_publication, stream_name
from thalweg.runtime.data.messages import (
    Continue,
    Describe,
    Described,
    Open,
    Opened,
    OpenTrack,
    Pieces,
)
from thalweg.runtime.data.mirror import UNTIL
from thalweg.runtime.data.routes import Place, Route, encode_place
from thalweg.runtime.data.statements import mirror_text
from thalweg.runtime.network.fragments.fragments import FRAGMENTS, Fragments, with_streams
from thalweg.runtime.network.fragments.handing import (
    VALUE_VERSION,
    Handed,
    HandedStream,
    decode_handed,
    epoch_of,
    moved_name,
    native_note,
)
from thalweg.runtime.network.fragments.placed_text import placed_text
from thalweg.runtime.network.fragments.publishing import note_of
from thalweg.runtime.network.mirrors.mirrored import AGAIN
from thalweg.runtime.network.mirrors.mirrors import Mirrors
from thalweg.runtime.network.mirrors.subscribing import SUBSCRIPTIONS
from thalweg.runtime.network.moves.moved import given_note
from thalweg.runtime.network.moves.tracks import old_fragment

_ROUNDS = 5  # of copying while the sender goes on; each copies what came during the last
_SMALL = 1 << 20  # bytes: then the rest may come while it stands still
_AT_ONCE = 64  # pieces in a request
_DESCRIBE_WITHIN_S = 600.0  # checksums of all that is there
_TRACK_WITHIN_S = 60.0


@dataclass(frozen=True, slots=True)
class Ahead:
    """What was subscribed to for a fragment that is to come."""

    streams: tuple[HandedStream, ...]
    routes: tuple[tuple[StreamDef, Route], ...]
    opened: tuple[tuple[str, str], ...]  # node and publication


@dataclass(frozen=True, slots=True)
class _OldTrack:
    """What is said with an old part (PTLB), and the mirror that it has here."""

    fragment: Fragment
    publication: str
    text: str
    stream: StreamDef


class Taker:
    def __init__(
        self,
        me: str,
        site: Site,
        mirrors: Mirrors,
        fragments: Fragments,
        publications: Publications,
        held: AbstractContextManager[object],
    ) -> None:
        self._me, self._site, self._mirrors, self._fragments = me, site, mirrors, fragments
        self._publications, self._held = publications, held
        self._ahead: dict[str, Ahead] = {}  # by move

    def arrived(self, move: str) -> Arrived:
        return Arrived(self._folder / file_name(move), durable=self._site.settings.durable)

    @property
    def _folder(self) -> Path:
        return self._site.engine.folder / "moving"

    # --- copying

    def copy(self, move: str, client: DataClient, *, is_final: bool) -> Handed:
        """All that the sender has, or most of it while it goes on. Raises CannotMove, Unreachable,
        NotServed."""
        arrived = self.arrived(move)
        before: int | None = None
        if not is_final and (handed := self.described(move, client)).way == MSLB:
            self._subscribe(move, handed)  # publishers keep rows for this node from now on
            return handed
        for number in range(_ROUNDS if not is_final else 1_000):
            handed = self.described(move, client)
            lacking = arrived.lacks(handed.manifest)
            size = sum(p.size for p in lacking)
            if not is_final and number and (size < _SMALL or (before and size > before // 2)):
                break  # what is left comes when it stands still
            before = size
            self.fetch(move, client, arrived, handed.manifest)
            if is_final and not arrived.lacks(handed.manifest):
                return handed
        if not is_final:
            self._subscribe(move, handed)
        return handed

    def _subscribe(self, move: str, handed: Handed) -> None:
        """To what the fragment reads, before it stands still: it takes time at others."""
        ahead = self.subscribed(handed)
        self._forget(move)
        self._ahead[move] = ahead

    def subscribed(self, handed: Handed) -> Ahead:
        """To what a fragment reads, from where it has read."""
        opened: list[tuple[str, str]] = []
        try:
            routes = [self._route(given, state, opened) for given, state in handed.states()]
        except BaseException:
            self.give_back(opened)
            raise
        return Ahead(handed.streams, tuple(routes), tuple(opened))

    def _forget(self, move: str) -> None:
        ahead = self._ahead.pop(move, None)
        if ahead is not None:
            self.give_back(list(ahead.opened))

    def give_back(self, opened: list[tuple[str, str]]) -> None:
        self._mirrors.give_back(opened)
        self._fragments.note_opening(remove=opened)

    def described(self, move: str, client: DataClient) -> Handed:
        answer = client.ask(Describe(move, self._me), within_s=_DESCRIBE_WITHIN_S)
        assert isinstance(answer, Described)
        handed = decode_handed(answer.handed)
        check_versions(handed.manifest, VALUE_VERSION)
        return handed

    def fetch(
        self, move: str, client: DataClient, arrived: Arrived, manifest: StateManifest
    ) -> None:
        """What is gone at the sender meanwhile is passed over: it is in what comes next."""
        lacking = arrived.lacks(manifest)
        for start in range(0, len(lacking), _AT_ONCE):
            wanted = lacking[start : start + _AT_ONCE]
            places = tuple((p.bundle, p.offset, p.size) for p in wanted)
            parts: dict[int, list[pa.Buffer]] = {}
            sizes = dict.fromkeys(range(len(wanted)), 0)
            for place, content in client.pieces(Pieces(move, self._me, places)):
                parts.setdefault(place, []).append(content)
                sizes[place] += len(content)
                if sizes[place] >= wanted[place].size:
                    arrived.put(wanted[place], *parts.pop(place))

    # --- standing

    def stands(self, publication: str, epoch: int) -> bool:
        return self._site.catalog.find(moved_name(publication, epoch)) is not None

    def stand(self, move: str, handed: Handed, epoch: int, client: DataClient) -> None:
        """Raises CannotMove, SiteError, Unreachable, NotServed; then nothing stands."""
        name = moved_name(handed.publication, epoch)
        ahead = self._ahead.get(move)
        if ahead is None or ahead.streams != handed.streams:  # or it reads somebody else by now
            self._subscribe(move, handed)
            ahead = self._ahead[move]
        try:
            made = [
                (*named, given, state)
                for named, (given, state) in zip(ahead.routes, handed.states(), strict=True)
            ]
            old = None
            if handed.way == PTLB:
                old = self._open_track(move, handed, client)
                opened = (*ahead.opened, (handed.sender, old.publication))
                ahead = self._ahead[move] = replace(ahead, opened=opened)
            self._execute(move, name, handed, epoch, made, old)
        except BaseException:
            self._forget(move)
            raise
        del self._ahead[move]
        self._fragments.note_opening(remove=list(ahead.opened))
        self.arrived(move).clear()
        for reader in handed.readers:
            self._site.engine.readers.keep(moved_name(reader, epoch), name)

    def _open_track(self, move: str, handed: Handed, client: DataClient) -> _OldTrack:
        """What the sender goes on to say with an old part, as a mirror that is to stand here."""
        tau = handed.manifest.frontier
        fragment = old_fragment(handed.fragment, tau)
        number = self._site.engine.store.take_numbers(FRAGMENTS, 1)
        wanted = [(handed.sender, fragment_publication(fragment, self._me, number))]
        self._fragments.note_opening(add=wanted)
        try:
            answer = client.ask(OpenTrack(move, self._me, number), within_s=_TRACK_WITHIN_S)
        except BaseException:
            self.give_back(wanted)
            raise
        assert isinstance(answer, Opened)
        schema = part_schema(fragment.node, stream_name(fragment, handed.sender, number))
        until = old_until(handed.fragment.node, tau)
        options = {
            "fragment": digest(fragment),
            "first": str(answer.watermark),
            UNTIL: str(until),
        }
        text = mirror_text(schema, handed.sender, answer.publication, options)
        (stream,) = compile_script(text).catalog.streams()
        return _OldTrack(fragment, answer.publication, text, stream)

    def _route(
        self, given: HandedStream, state: StreamState, opened: list[tuple[str, str]]
    ) -> tuple[StreamDef, Route]:
        """The stream that stands for it here, and from where it comes."""
        # Streams and fragments are counted apart: a name that was given before is another's.
        counted = SUBSCRIPTIONS if given.fragment is None else FRAGMENTS
        number = self._site.engine.store.take_numbers(counted, 1)
        request: Open | Continue
        if given.until is not None and state.upto >= FOREVER:
            # An old track that is over: nobody publishes it any more.
            assert given.fragment is not None
            assert given.publication is not None
            return self._named(given, Route(given.publication, given.where), number)
        if given.publication is None:
            wanted = publication_name(given.name, self._me, number)
            since = state.upto - 1 if BEGINNING < state.upto < FOREVER else None
            request = Open(given.name, self._me, number, 0, None, since)
        else:
            head, _, _ = given.publication.rpartition(">")
            wanted = f"{head}>{self._me}.{number}"
            request = Continue(given.publication, self._me, number, state.upto)
        opened.append((given.at, wanted))
        self._fragments.note_opening(add=[(given.at, wanted)])
        client = self._mirrors.connect(given.at)
        try:
            answer = client.ask(request)
        finally:
            client.close()
        assert isinstance(answer, Opened)
        return self._named(given, Route(answer.publication, given.where), number)

    def _named(self, given: HandedStream, route: Route, number: int) -> tuple[StreamDef, Route]:
        (like,) = compile_script(given.text).catalog.streams()
        own = f"{AGAIN}{given.of}.{number}"
        if given.fragment is not None:
            own = stream_name(given.fragment, given.at, number)
        text = _text(replace(like, name=own), route, given)
        (stream,) = compile_script(text).catalog.streams()
        return stream, route

    def _execute(
        self,
        move: str,
        name: str,
        handed: Handed,
        epoch: int,
        made: list[tuple[StreamDef, Route, HandedStream, StreamState]],
        old: _OldTrack | None,
    ) -> None:
        engine, store = self._site.engine, self._site.engine.store
        own = [stream.name for stream, *_ in made]
        plan = with_streams(
            decode_plan(handed.plan), {given.name: stream for stream, _, given, _ in made}
        )
        texts = [_text(stream, route, given) for stream, route, given, _ in made]
        if old is None:
            anew = begins_anew(plan, handed.manifest)
        else:
            anew = handed.manifest.frontier
            plan = both(plan, in_its_place(plan, old.stream))
            texts.append(old.text)

        def before() -> None:
            begin_adopted(engine, name, handed.manifest, own, anew)

        def after() -> None:
            adopt(engine, name, handed.manifest, self.arrived(move), own, VALUE_VERSION, anew)
            if old is not None:
                self._mirrors.begin_with(old.stream, Route(old.publication))
                self._fragments.follow_later(old.stream.name, old.fragment)
            store.write_note(note_of(name), msgspec.msgpack.encode(handed.fragment))
            if handed.native_to:
                store.write_note(native_note(name), handed.native_to.encode())
            if handed.given is not None:
                store.write_note(given_note(name), msgspec.msgpack.encode(handed.given))
            for stream, route, given, state in made:
                self._mirrors.begin_with(stream, route)
                if state.has_begun:
                    place = encode_place(Place(route.publication, state.upto))
                    store.inputs.write_resume_point(stream.name, 0, place)
                if given.fragment is not None:
                    self._fragments.follow_later(stream.name, given.fragment)
            for reader in handed.readers:
                since = handed.manifest.frontier
                self._publications.sharers.go_on(moved_name(reader, epoch), name, since)

        script = "".join(f"{t}; " for t in texts) + placed_text(name, plan)
        with self._held:
            if self._site.catalog.find(name) is not None:
                return
            self._site.execute(script, within=Within(before, after))

    def stand_copy(self, move: str, handed: Handed, reader: str, ahead: Ahead) -> str:
        """A fragment whose node is gone stands here as it was copied, for a reader of this node;
        the publication. Raises CannotMove, SiteError; then nothing stands."""
        epoch = epoch_of(reader) + 1
        name, read = moved_name(handed.publication, epoch), moved_name(reader, epoch)
        alone = msgspec.structs.replace(handed, readers=(reader,))
        made = [
            (*named, given, state)
            for named, (given, state) in zip(ahead.routes, handed.states(), strict=True)
        ]
        self._execute(move, name, alone, epoch, made, None)
        self._site.engine.readers.keep(read, name)
        return read

    def texts(self, ahead: Ahead) -> list[str]:
        """The statements of the streams that inputs will have here."""
        named = zip(ahead.routes, ahead.streams, strict=True)
        return [_text(stream, route, given) for (stream, route), given in named]

    def give_up(self, move: str) -> None:
        """What has come, and what was subscribed to, is of no use."""
        self.arrived(move).clear()
        self._forget(move)

    def discard(self, move: str, publication: str, epoch: int) -> None:
        self.give_up(move)
        name = moved_name(publication, epoch)
        if self._site.catalog.find(name) is not None:
            for reader in self._publications.sharers.of(name):
                self._publications.close(reader)


def stream_of(text: str) -> StreamDef:
    """The stream of a statement."""
    (stream,) = compile_script(text).catalog.streams()
    return stream


def _text(stream: StreamDef, route: Route, given: HandedStream) -> str:
    told = {"stream": given.of, "first": str(given.first)}
    if given.until is not None:
        told[UNTIL] = given.until
    return mirror_text(stream, given.at, route.publication, told)
