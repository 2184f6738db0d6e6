"""Copies of what nobody could rebuild: a fragment's state at its reader, renewed now and then.

A copy is what a move by pre-copy would have taken: segments and a manifest, as of an instant f, and
a subscription to each input, whose publisher keeps rows for it from there on. It counts once the
reader has all that the fragment said before f. If the fragment's node is gone, the fragment goes on
here from f: what it says once more is the same, and the reader takes each instant once.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import msgspec

from thalweg.engine.failures import FAILURES
from thalweg.engine.shared.moving.adopt import check_versions
from thalweg.engine.shared.moving.manifest import CannotMove
from thalweg.engine.site import Site, SiteError
from thalweg.plan.catalog import StreamDef
from thalweg.runtime.data.client import DataClient, NotServed, Unreachable
from thalweg.runtime.data.fragments import Fragment, whole_reach
from thalweg.runtime.data.messages import Acknowledge, DescribeCopy, Described
from thalweg.runtime.data.routes import Route
from thalweg.runtime.network.fragments.fragments import Fragments
from thalweg.runtime.network.fragments.handing import (
    VALUE_VERSION,
    Handed,
    decode_handed,
    encode_handed,
)
from thalweg.runtime.network.mirrors.mirrors import Mirrors
from thalweg.runtime.network.moves.taking import Ahead, Taker, stream_of

log = logging.getLogger(__name__)

COPY = "copy "  # in the place of a move's name
_NOTE = "copy/"
_ROUNDS = 5  # what is merged while it is fetched is described once more
_READ_WITHIN_S, _LOOK_EVERY_S = 10.0, 0.05
_DESCRIBE_WITHIN_S = 600.0


class Copy(msgspec.Struct, frozen=True):
    """`texts` are the streams that its inputs will have here."""

    handed: bytes
    texts: tuple[str, ...]
    routes: tuple[Route, ...]
    opened: tuple[tuple[str, str], ...]
    made: float

    @property
    def state(self) -> Handed:
        return decode_handed(self.handed)


class Copies:
    """`every_s`: how often they are renewed; None: none are made."""

    def __init__(
        self,
        me: str,
        site: Site,
        mirrors: Mirrors,
        fragments: Fragments,
        taker: Taker,
        every_s: float | None,
    ) -> None:
        self._me, self._site, self._mirrors, self._fragments = me, site, mirrors, fragments
        self._taker, self._every_s = taker, every_s
        self._stop = threading.Event()
        self._lock = threading.Lock()

    def start(self) -> None:
        if self._every_s is not None:
            threading.Thread(target=self._run, name="copies", daemon=True).start()

    def close(self) -> None:
        self._stop.set()

    # --- what there is

    def find(self, key: str) -> Copy | None:
        """Of what a mirror reads."""
        note = self._site.engine.store.note(_NOTE + key)
        return None if note is None else msgspec.msgpack.decode(note, type=Copy)

    def forget(self, key: str) -> None:
        """The mirror is gone, or reads something that is computed here."""
        with self._lock:
            known = self.find(key)
            if known is not None:
                self._site.engine.store.delete_note(_NOTE + key)
                self._taker.arrived(COPY + key).clear()
                self._mirrors.give_back(known.opened)

    # --- making them

    def _run(self) -> None:
        assert self._every_s is not None
        while not self._stop.wait(self._every_s):
            for key, stream, _ in list(self._lossy()):
                try:
                    self.renew(key, stream)
                except FAILURES as error:
                    log.info("%s is not copied: %s", key, error)

    def _lossy(self) -> Iterator[tuple[str, StreamDef, Fragment]]:
        for key, (stream, fragment) in self._fragments.read():
            is_elsewhere = self._mirrors.needed(stream) != self._me
            if is_elsewhere and key not in self._site.lost and whole_reach(fragment) is None:
                yield key, stream, fragment

    def renew(self, key: str, stream: StreamDef) -> bool:
        """Whether there is a newer copy now. Raises CannotMove, SiteError, Unreachable,
        NotServed."""
        place = self._mirrors.place(stream)
        if place is None or len(self._mirrors.routes(stream)) > 1:
            return False  # nothing was said yet, or it goes elsewhere just now
        with self._lock:
            client = self._mirrors.connect(self._mirrors.needed(stream))
            try:
                return self._renew(key, stream, place.publication, client)
            finally:
                client.close()

    def _renew(self, key: str, stream: StreamDef, publication: str, client: DataClient) -> bool:
        known, move = self.find(key), COPY + key
        handed = self._described(publication, client)
        is_new = known is None or known.state.streams != handed.streams
        if is_new:  # before it is described for good, so that nothing is missing in between
            ahead = self._taker.subscribed(handed)
        else:
            assert known is not None
            ahead = Ahead(handed.streams, self._made(known), known.opened)
        try:
            whole = self._fetched(move, publication, client)
            if whole.streams != ahead.streams:
                raise CannotMove("its inputs come from elsewhere by now")
            if not self._has_read(stream, whole.manifest.frontier):
                raise CannotMove("what it has said does not come")
        except BaseException:
            if is_new:
                self._taker.give_back(list(ahead.opened))
            raise
        texts = tuple(self._taker.texts(ahead))
        routes = tuple(route for _, route in ahead.routes)
        copy = Copy(encode_handed(whole), texts, routes, ahead.opened, time.time())
        self._site.engine.store.write_note(_NOTE + key, msgspec.msgpack.encode(copy))
        self._fragments.note_opening(remove=list(ahead.opened))
        self._taker.arrived(move).keep_only(whole.manifest)
        if is_new and known is not None:
            self._mirrors.give_back(known.opened)
        self._acknowledge(whole, routes)
        return True

    def _described(self, publication: str, client: DataClient) -> Handed:
        answer = client.ask(DescribeCopy(publication), within_s=_DESCRIBE_WITHIN_S)
        assert isinstance(answer, Described)
        handed = decode_handed(answer.handed)
        check_versions(handed.manifest, VALUE_VERSION)
        if not handed.manifest.has_spoken:
            raise CannotMove("it has said nothing yet")
        at_home = [s.of for s in handed.streams if s.publication is None]
        if at_home:
            raise CannotMove(f"{at_home[0]} is at home there, and would be gone, too")
        return handed

    def _fetched(self, move: str, publication: str, client: DataClient) -> Handed:
        arrived = self._taker.arrived(move)
        for _ in range(_ROUNDS):
            handed = self._described(publication, client)
            self._taker.fetch(COPY + publication, client, arrived, handed.manifest)
            if not arrived.lacks(handed.manifest):
                return handed
        raise CannotMove("what it remembers changes too fast")

    def _has_read(self, stream: StreamDef, upto: int) -> bool:
        """What was said before is here, durably."""
        until = time.monotonic() + _READ_WITHIN_S
        while not self._stop.is_set():
            place = self._mirrors.place(stream)
            if place is not None and place.instant >= upto:
                return True
            if time.monotonic() > until:
                return False
            time.sleep(_LOOK_EVERY_S)
        return False

    def _acknowledge(self, handed: Handed, routes: tuple[Route, ...]) -> None:
        """Publishers keep rows from where the copy is."""
        for (given, state), route in zip(handed.states(), routes, strict=True):
            with suppress(Unreachable, NotServed):
                client = self._mirrors.connect(given.at)
                try:
                    client.ask(Acknowledge(route.publication, state.upto))
                finally:
                    client.close()

    # --- going on with one

    def _made(self, copy: Copy) -> tuple[tuple[StreamDef, Route], ...]:
        return tuple(zip(map(stream_of, copy.texts), copy.routes, strict=True))

    def begin(self, key: str, stream: StreamDef) -> int:
        """The fragment goes on here; from which instant on. Raises SiteError, CannotMove."""
        with self._lock:
            copy, place = self.find(key), self._mirrors.place(stream)
            if copy is None or place is None:
                raise SiteError(f"there is no copy of {key}")
            handed = copy.state
            ahead = Ahead(handed.streams, self._made(copy), copy.opened)
            publication = self._taker.stand_copy(COPY + key, handed, place.publication, ahead)
            route = Route(publication, None, place.instant, self._me, continues=True)
            self._mirrors.succeed(stream, route)
            self._site.engine.store.delete_note(_NOTE + key)
            self._taker.arrived(COPY + key).clear()
            return handed.manifest.frontier
