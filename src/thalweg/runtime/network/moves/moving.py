"""Fragments move between live nodes with their state: the live side of `adapt/handover`.

The protocol says who owns a fragment from when on; here is what engines do for it. A sender gives
out state only while a move is open, and tells readers in band where its publication goes on.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import TimeoutError as NotInTime
from contextlib import suppress

import msgspec
import pyarrow as pa

from thalweg.adapt.handover import (
    WAYS,
    Adopted,
    CannotGive,
    CannotTake,
    Discard,
    Ended,
    Fetch,
    Fetched,
    Freeze,
    Frozen,
    Give,
    Giving,
    Gone,
    GoneOver,
    Handover,
    Taking,
)
from thalweg.adapt.handover.messages import PRECOPY, PTLB, Step
from thalweg.adapt.moves.tracks import old_until
from thalweg.engine.failures import FAILURES
from thalweg.engine.shared.moving.export import Export, movable
from thalweg.engine.shared.moving.manifest import CannotMove
from thalweg.engine.site import Site, SiteError, Unknown, WrongUse
from thalweg.engine.site.publications import reader_of
from thalweg.overlay.stack import Stack
from thalweg.plan.engines import SHARED
from thalweg.plan.shapes import shape_of
from thalweg.runtime.data.client import NotServed, Unreachable
from thalweg.runtime.data.fragments import Fragment, digest, is_fragment
from thalweg.runtime.data.messages import MovedTo
from thalweg.runtime.data.server import CannotPublish, DataServer
from thalweg.runtime.driver.driver import Driver
from thalweg.runtime.driver.errors import DriverClosed
from thalweg.runtime.network.directory import Directory, NodeInfo, node_of
from thalweg.runtime.network.fragments.fragments import Fragments
from thalweg.runtime.network.fragments.handing import (
    VALUE_VERSION,
    encode_handed,
    epoch_of,
    handed,
    moved_name,
)
from thalweg.runtime.network.fragments.publishing import note_of
from thalweg.runtime.network.mirrors.mirrors import Mirrors
from thalweg.runtime.network.moves.copying import COPY
from thalweg.runtime.network.moves.journal import REPLAY, Journal, MoveRecord
from thalweg.runtime.network.moves.taking import Taker
from thalweg.runtime.network.moves.tracks import OldTracks

log = logging.getLogger(__name__)

NAME = "handover"
_CALL_WITHIN_S = 30.0
_OPEN = (Step.COPYING, Step.FREEZING, Step.FROZEN)
_Asked = Freeze | Ended | Fetch | Discard


class LiveMoves:
    def __init__(self, driver: Driver, directory: Directory) -> None:
        self._driver, self._directory = driver, directory
        self._exports: dict[str, Export] = {}
        self._busy: dict[str, _Asked] = {}
        self._next: dict[str, _Asked] = {}  # what was asked for meanwhile
        self._lock = threading.Lock()
        self._given: dict[str, Giving] = {}  # by fragment

    def attach(
        self,
        site: Site,
        mirrors: Mirrors,
        fragments: Fragments,
        data: DataServer,
        taker: Taker,
        tracks: OldTracks,
        closed: Callable[[], None],
    ) -> None:
        """`closed` is told when a fragment is not needed here any more."""
        self._tracks = tracks
        self._site, self._mirrors, self._fragments = site, mirrors, fragments
        self._data, self._taker, self._closed = data, taker, closed
        self.journal = Journal(site.engine.store)
        for giving in self._giving().values():
            if giving.step is Step.GIVEN:
                site.engine.retire(giving.fragment)
                self._given[giving.fragment] = giving
        self._settle_forgotten()
        data.give_with(self)
        self._driver.on(NAME, self._told)
        self._directory.on_gone(self._gone)

    def _settle_forgotten(self) -> None:
        """This node may have ended before its engine or its journal heard of what its protocol had
        decided and forgotten. What the protocol does not know stays here: of what it gives away, it
        forgets nothing before the engine has said so."""
        known, engine, me = self._giving(), self._site.engine, self._directory.me.name
        leaving = {g.fragment for g in known.values() if g.step is not Step.KEPT}
        for fragment in list(engine.frozen):
            if fragment not in leaving:
                engine.thaw(fragment)
        for record in self.journal.all():
            is_here = record.at == me and record.by != REPLAY
            if is_here and not record.is_over and record.move not in known:
                had = "ended" if record.frozen is not None else "began"
                why = f"{me} was started again before it {had}"
                self.journal.change(record.move, state="failed", error=why, ended=time.time())

    def _gone(self, node: str) -> None:
        """By the address that moves know: the directory may have forgotten it."""
        for giving in self._giving().values():
            record = self.journal.find(giving.move)
            if record is not None and record.to == node:
                self._call(Gone(giving.to))

    def _giving(self) -> dict[str, Giving]:
        return self._driver.read(_given_away)

    def _call(self, request: object) -> None:
        with suppress(DriverClosed, NotInTime):
            self._driver.call(NAME, request).result(_CALL_WITHIN_S)

    # --- asking for a move

    def begin(
        self, publication: str, to: str, way: str = PRECOPY, *, asked_by: str = "", why: str = ""
    ) -> MoveRecord:
        """Raises WrongUse, Unknown."""
        if way not in WAYS:
            raise WrongUse(f"there is no way {way}: there are {', '.join((*WAYS, REPLAY))}")
        fragment = self.check(publication, to)
        try:
            movable(self._site.engine, fragment)
        except CannotMove as error:
            raise WrongUse(f"{error} (--by {REPLAY})") from None
        if way == PTLB:
            try:
                self._tracks.check(fragment)
            except CannotMove as error:
                raise WrongUse(f"{publication} can't go by {PTLB}: {error}") from None
        if any(g.fragment == fragment and g.step is not Step.KEPT for g in self._giving().values()):
            raise WrongUse(f"{publication} is on its way already: look again when it is there")
        there = node_of(self._directory, to)
        if there.engine != SHARED:
            raise WrongUse(
                f"{to} has another engine ({there.engine}), which does not take state over: move "
                f"it by --by {REPLAY}"
            )
        record = self.journal_of(fragment, to, way, asked_by, why)
        address = there.address
        self._call(Give(record.move, fragment, address, record.epoch, way))
        return record

    def check(self, publication: str, to: str) -> str:
        """The query that computes a fragment, if it can be asked to go there. Raises WrongUse,
        Unknown."""
        fragment, known = self._fragment(publication), [n.name for n in self._directory.nodes()]
        if to not in known:
            raise Unknown("node", to, known)
        if to == self._directory.me.name:
            raise WrongUse(f"{publication} is at {to} already")
        if not self._directory.is_up(to):
            raise WrongUse(f"{to} does not answer now: try again when it is back")
        return fragment

    def journal_of(self, fragment: str, to: str, way: str, asked_by: str, why: str) -> MoveRecord:
        """A move that begins now."""
        number = self._site.engine.store.take_numbers("moves", 1)
        me = self._directory.me.name
        first = shape_of(self._site.query(fragment)).streams[0]
        record = MoveRecord(
            f"{me}.{number}",
            fragment,
            digest(self._note(fragment)),
            me,
            to,
            way,
            epoch_of(fragment) + 1,
            time.time(),
            asked_by,
            why,
            resolution_us=first.resolution_us if first.timestamp_type.is_temporal else 0,
        )
        self.journal.write(record)
        return record

    def computed_by(self, publication: str) -> str:
        """The query that has it, for all of its readers. Raises Unknown."""
        return self._fragment(publication)

    def on_their_way(self) -> set[str]:
        """Queries of this node that a hand-over has: to others, or from them and not settled."""
        giving, taking = self._driver.read(_open_moves)
        leaving = {g.fragment for g in giving.values() if g.step is not Step.KEPT}
        return leaving | {moved_name(t.fragment, t.epoch) for t in taking.values()}

    def goes_on_tracks(self, fragment: str) -> bool:
        """Whether PTLB can move it now."""
        try:
            self._tracks.check(fragment)
        except CannotMove:
            return False
        return True

    def is_given(self, fragment: str) -> bool:
        """Whether another node has it, and only readers are to follow."""
        return fragment in self._given

    def _fragment(self, publication: str) -> str:
        """The query that computes it."""
        found = self._data.publications.sharers.find(publication).of
        if not is_fragment(publication) or self._site.catalog.find(found) is None:
            known = [q.name for q in self._site.catalog.queries() if is_fragment(q.name)]
            raise Unknown("fragment", publication, known)
        return found

    def _note(self, fragment: str) -> Fragment:
        note = self._site.engine.store.note(note_of(fragment))
        if note is None:
            raise CannotMove(f"nobody knows what {fragment} is made of")
        return msgspec.msgpack.decode(note, type=Fragment)

    def await_end(self, move: str, within_s: float) -> MoveRecord:
        """Until it is decided where the fragment runs."""
        until = time.monotonic() + within_s
        while True:
            record = self.journal.find(move)
            assert record is not None
            if record.is_over or time.monotonic() > until:
                return record
            time.sleep(0.05)

    # --- what others ask of a sender

    def describe(self, move: str, receiver: str) -> bytes:
        """Raises CannotPublish."""
        giving = self._open(move, receiver)
        try:
            if giving.step is Step.COPYING:
                self._site.engine.pin(giving.fragment)
            export = self._export(giving)
            readers = self._data.publications.sharers.of(giving.fragment)
            made = handed(
                self._directory.me.name,
                self._site,
                self._mirrors,
                self._fragments,
                export,
                self._note(giving.fragment),
                readers,
                giving.way,
            )
        except CannotMove as error:
            raise CannotPublish(str(error)) from None
        self.journal.change(move, total=made.manifest.size)
        return encode_handed(made)

    def describe_copy(self, publication: str) -> bytes:
        if self.moved(publication) is not None:
            raise CannotPublish(f"{publication} has moved", later=True)
        try:
            fragment = self._fragment(publication)
        except Unknown:
            self._exports.pop(COPY + publication, None)
            raise
        try:
            export = self._export_of(COPY + publication, fragment)
            note = self._note(fragment)
            made = handed(
                self._directory.me.name,
                self._site,
                self._mirrors,
                self._fragments,
                export,
                note,
                [publication],
                PRECOPY,
            )
        except (CannotMove, SiteError) as error:
            raise CannotPublish(str(error)) from None
        return encode_handed(made)

    def track(self, move: str, receiver: str, number: int) -> tuple[str, int]:
        giving = self._open(move, receiver)
        if giving.way != PTLB or giving.tau is None:
            raise CannotPublish(f"{move} has no old track")
        try:
            note = self._note(giving.fragment)
            name = self._tracks.open(giving.fragment, note, giving.tau, receiver, number)
        except (CannotMove, SiteError) as error:
            raise CannotPublish(str(error)) from None
        until = old_until(note.node, giving.tau)
        self.journal.change(move, until=until)
        self._site.ticker.wake()
        return name, giving.tau - 1

    def piece(self, move: str, receiver: str, piece: tuple[str, int, int]) -> pa.Buffer:
        bundle, offset, size = piece
        if move.startswith(COPY):
            export = self._exports.get(move)
            if export is None or reader_of(move) != receiver:
                raise CannotPublish(f"{move} is not for {receiver}")
        else:
            export = self._export(self._open(move, receiver))
        try:
            content = export.read((bundle, offset), size)
        except CannotMove:
            return pa.py_buffer(b"")  # the next manifest lists what has taken its place
        self.journal.sent(move, content.size)
        return content

    def moved(self, publication: str) -> MovedTo | None:
        given = self._given.get(self._data.publications.sharers.find(publication).of)
        if given is None:
            return None
        assert given.tau is not None
        at = self._node_at(given.to)
        if at is None:
            return None
        return MovedTo(given.tau, at.name, moved_name(publication, given.epoch))

    def _open(self, move: str, receiver: str) -> Giving:
        giving = self._giving().get(move)
        if giving is None or giving.step not in _OPEN:
            raise CannotPublish(f"{move} is over")
        at = self._node_at(giving.to)
        if at is None or at.name != receiver:
            raise CannotPublish(f"{move} is not for {receiver}")
        return giving

    def _export(self, giving: Giving) -> Export:
        return self._export_of(giving.move, giving.fragment)

    def _export_of(self, move: str, fragment: str) -> Export:
        with self._lock:
            if move not in self._exports:
                engine, gate = self._site.engine, self._site.gate
                made = Export(engine, fragment, VALUE_VERSION, gate.between_ticks)
                self._exports[move] = made
            return self._exports[move]

    def _node_at(self, address: str) -> NodeInfo | None:
        return next((n for n in self._directory.nodes() if n.address == address), None)

    # --- what the protocol says

    def _told(self, value: object) -> None:
        match value:
            case Freeze() | Ended() | Fetch() | Discard():
                self._start(value)

    def _start(self, value: _Asked) -> None:
        """On a thread of its own: a tick or a copy may take its time. One thing at a time for each
        move, then the last of what was asked for meanwhile."""
        move = value.giving.move if isinstance(value, Ended) else value.move
        with self._lock:
            if move in self._busy:
                if value != self._busy[move]:  # what is being done is said again and again
                    self._next[move] = value
                return
            self._busy[move] = value

        def run() -> None:
            asked: _Asked | None = value
            while asked is not None:
                try:
                    self._do(asked)
                except FAILURES as error:  # it will be said again
                    log.warning("%s: %s", move, error)
                with self._lock:
                    asked = self._next.pop(move, None)
                    if asked is None:
                        del self._busy[move]
                    else:
                        self._busy[move] = asked

        threading.Thread(target=run, name=f"move {move}", daemon=True).start()

    def _do(self, value: _Asked) -> None:
        match value:
            case Freeze(move, fragment):
                self._freeze(move, fragment)
            case Ended(giving):
                self._ended(giving)
            case Fetch():
                self._fetch(value)
            case Discard(move, fragment, epoch):
                self._taker.discard(move, fragment, epoch)
                self._closed()

    def _thaw(self, fragment: str) -> None:
        """It goes on here, unless another move has begun."""
        moves = self._giving().values()
        if not any(g.fragment == fragment and g.step is not Step.KEPT for g in moves):
            self._site.engine.thaw(fragment)
            self._site.ticker.wake()

    def _freeze(self, move: str, fragment: str) -> None:
        if fragment in self._site.engine.frozen:
            with self._site.gate.between_ticks():
                self._call(Frozen(move, self._site.engine.freeze(fragment)))
            return
        try:
            with self._site.gate.between_ticks():
                tau = self._site.engine.freeze(fragment)
        except CannotMove as error:
            if "interrupted" not in str(error):
                self._call(CannotGive(move, str(error)))
            return
        self.journal.change(move, state="frozen", frozen=time.time(), since=tau)
        self._call(Frozen(move, tau))

    def _ended(self, giving: Giving) -> None:
        with self._lock:
            self._exports.pop(giving.move, None)
        if giving.step is Step.KEPT:
            self._thaw(giving.fragment)
            known = self.journal.find(giving.move)
            if known is not None and not known.is_over:
                # The protocol knows nodes by their addresses.
                why = None if giving.why is None else giving.why.replace(giving.to, known.to)
                how = {"state": "failed", "error": why, "ended": time.time()}
                self.journal.change(giving.move, **how)
            return
        if giving.fragment not in self._given:
            self._given[giving.fragment] = giving
            self._site.changes.tell()  # who waits for rows is told where they come from
            with self._site.gate.between_ticks():
                self._site.engine.retire(giving.fragment)
        known = self.journal.find(giving.move)
        if known is not None and not known.is_over:
            self.journal.change(
                giving.move, state="done", since=giving.tau, ended=time.time(), error=None
            )
        if self._site.catalog.find(giving.fragment) is None:
            self._given.pop(giving.fragment, None)
            self._call(GoneOver(giving.move))

    def _fetch(self, asked: Fetch) -> None:
        move, fragment, epoch = asked.move, asked.fragment, asked.epoch
        if self._taker.stands(fragment, epoch):
            self._call(Adopted(move))
            return
        sender = self._node_at(asked.sender)
        if sender is None:
            return
        try:
            client = self._mirrors.connect(sender.name)
            try:
                made = self._taker.copy(move, client, is_final=asked.tau is not None)
                if asked.tau is None:
                    self._call(Fetched(move))
                    return
                if made.manifest.frontier != asked.tau:
                    return  # it was described before it stood still
                self._taker.stand(move, made, epoch, client)
            finally:
                client.close()
            self._call(Adopted(move))
        except Unreachable as error:
            log.info("%s: %s", move, error)  # it is asked again
        except NotServed as error:
            if not error.later:
                self._refuse(move, error)
        except (CannotMove, SiteError) as error:
            self._refuse(move, error)

    def _refuse(self, move: str, why: Exception) -> None:
        self._call(CannotTake(move, str(why)))
        self._taker.give_up(move)


def _open_moves(stack: Stack) -> tuple[dict[str, Giving], dict[str, Taking]]:
    handover = stack[NAME]
    assert isinstance(handover, Handover)
    return handover.giving(), handover.taking()


def _given_away(stack: Stack) -> dict[str, Giving]:
    found: dict[str, Giving] = stack[NAME].giving()  # type: ignore[attr-defined]
    return found
