"""A fragment as one node hands it to another: what it is, what it reads of whom, who reads it, and
the manifest of what it remembers."""

from __future__ import annotations

import msgspec

from thalweg.adapt.handover.messages import PTLB
from thalweg.engine.shared.moving.export import Export
from thalweg.engine.shared.moving.manifest import CannotMove, StateManifest, StreamState
from thalweg.engine.site import Site
from thalweg.engine.site.publications import is_mirror
from thalweg.plan.catalog import StreamDef
from thalweg.plan.travelling import encode_plan
from thalweg.runtime.data.fragments import VALUES, Fragment
from thalweg.runtime.data.mirror import UNTIL
from thalweg.runtime.data.profiles import Where
from thalweg.runtime.data.routes import after
from thalweg.runtime.data.statements import schema_text
from thalweg.runtime.network.fragments.fragments import Fragments
from thalweg.runtime.network.mirrors.mirrored import first_of
from thalweg.runtime.network.mirrors.mirrors import Mirrors
from thalweg.runtime.network.moves.moved import given_note

VALUE_VERSION = str(VALUES)
_EPOCH = "~"  # in the name of a publication: how often it has moved


class HandedStream(msgspec.Struct, frozen=True):
    """A stream that the fragment reads: at home at the sender (no publication), or its mirror."""

    name: str  # at the sender
    of: str  # for people
    text: str
    at: str
    publication: str | None
    where: Where | None
    first: int
    fragment: Fragment | None  # if another node computes it
    until: str | None = None  # nothing comes behind that instant


class Handed(msgspec.Struct, frozen=True):
    publication: str
    readers: tuple[str, ...]
    fragment: Fragment
    plan: bytes
    streams: tuple[HandedStream, ...]
    manifest: StateManifest
    way: str
    sender: str
    native_to: str = ""  # whose it is, where partners have decided that
    given: Fragment | None = None  # as it was asked for, but for what has moved of its inputs

    def states(self) -> list[tuple[HandedStream, StreamState]]:
        return list(zip(self.streams, self.manifest.streams, strict=True))


def epoch_of(publication: str) -> int:
    _, mark, epoch = publication.rpartition(_EPOCH)
    return int(epoch) if mark else 0


def moved_name(publication: str, epoch: int) -> str:
    """By which it is known where it has moved to."""
    head, mark, _ = publication.rpartition(_EPOCH)
    return f"{head if mark else publication}{_EPOCH}{epoch}"


def native_note(publication: str) -> str:
    """Under which it is kept whose a fragment is (`natives.py`)."""
    return f"native/{publication}"


def handed(
    me: str,
    site: Site,
    mirrors: Mirrors,
    fragments: Fragments,
    export: Export,
    fragment: Fragment,
    readers: list[str],
    way: str,
) -> Handed:
    """Raises CannotMove."""
    manifest = export.manifest(only_new=way == PTLB)
    read = dict(fragments.read())
    streams = []
    for state in manifest.streams:
        stream = site.stream(state.name)
        known = read.get(stream.name)
        streams.append(_stream(me, mirrors, stream, None if known is None else known[1]))
    plan = encode_plan(site.query(export.query).plan)
    note = site.engine.store.note(native_note(export.query))
    native = "" if note is None else note.decode()
    changed = site.engine.store.note(given_note(export.query))
    given = None if changed is None else msgspec.msgpack.decode(changed, type=Fragment)
    return Handed(
        export.query,
        tuple(readers),
        fragment,
        plan,
        tuple(streams),
        manifest,
        way,
        me,
        native,
        given,
    )


def _stream(
    me: str, mirrors: Mirrors, stream: StreamDef, fragment: Fragment | None
) -> HandedStream:
    options = dict(stream.options)
    text, of = schema_text(stream), options.get("stream", stream.name)
    if not is_mirror(stream):
        return HandedStream(stream.name, of, text, me, None, None, first_of(stream), None)
    routes, place = mirrors.routes(stream), mirrors.place(stream)
    route = routes[0]
    if place is not None:
        route = next((r for r in routes if r.publication == place.publication), route)
    if after(routes, route.publication) is not None:
        raise CannotMove(f"{of} is about to be read from elsewhere: it goes when that is over")
    at = mirrors.home(stream)
    first, until = first_of(stream), options.get(UNTIL)
    return HandedStream(
        stream.name, of, text, at, route.publication, route.where, first, fragment, until
    )


encode_handed = msgspec.msgpack.Encoder().encode
decode_handed = msgspec.msgpack.Decoder(Handed).decode
