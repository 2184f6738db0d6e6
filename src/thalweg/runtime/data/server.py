"""A node's publications over Arrow Flight: readers pull at their own pace."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import pyarrow as pa
from pyarrow import flight

from thalweg.adapt.balancing.fragments import NodeLoad
from thalweg.engine.shared.registering import Past
from thalweg.engine.shared.state.remote.kept_objects import KeptObjects
from thalweg.engine.shared.state.remote.node_objects import OBJECTS, Answered, Asked
from thalweg.engine.shared.state.remote.objects import Taken
from thalweg.engine.site import Forgotten, SiteError, Unknown
from thalweg.engine.site.changes import Turn
from thalweg.engine.site.publications import Publications, no_rows, reader_of
from thalweg.runtime.data.batches import PIECES, batch_of, piece_batch
from thalweg.runtime.data.fragments import Fragment, is_fragment
from thalweg.runtime.data.messages import (
    Acknowledge,
    Answer,
    Carry,
    Close,
    Continue,
    Describe,
    DescribeCopy,
    Described,
    Done,
    Hang,
    Heard,
    Hung,
    Label,
    LabelledAs,
    Measure,
    Measures,
    Move,
    MovedTo,
    Open,
    Opened,
    OpenFragment,
    OpenTrack,
    Pieces,
    Range,
    Reached,
    Read,
    Refused,
    Request,
    Shift,
    Weigh,
    Weighed,
    decode_request,
    decode_ticket,
    encode,
)
from thalweg.runtime.data.pace import Pace
from thalweg.runtime.transport.addresses import BadAddress, host_and_port, is_loopback
from thalweg.runtime.transport.tls import node_name

if TYPE_CHECKING:
    from thalweg.engine.site import Site

ASK = "thalweg"  # the one action
_AT_ONCE = 4 << 20  # bytes of a piece in a batch
KEEP_ALIVE_S = 1.0  # so often a quiet publication says that it is there
MOST_KEPT_ALIVE_A_S = 100  # of a node; who reads among many hears it less often


class CannotPublish(Exception):
    """Why this node does not compute a fragment, or hand a stream out; `later`: what it needs is
    away just now."""

    def __init__(self, reason: str, *, later: bool = False) -> None:
        super().__init__(reason)
        self.later = later


class Publisher(Protocol):
    """Computes fragments for other nodes."""

    def publish(
        self, fragment: Fragment, reader: str, number: int, complete: bool, since: int | None
    ) -> tuple[str, Past]:
        """The publication, and where it begins; asked again, it answers the same. Raises
        CannotPublish."""
        ...

    def closed(self) -> None:
        """A fragment is not read any more."""

    def move(self, asked: Move) -> None:
        """Read a fragment from another node. Raises CannotPublish."""


class Giver(Protocol):
    """Gives fragments of this node to others, with their state."""

    def describe(self, move: str, receiver: str) -> bytes:
        """Raises CannotPublish."""
        ...

    def describe_copy(self, publication: str) -> bytes:
        """For its reader. Raises CannotPublish."""
        ...

    def piece(self, move: str, receiver: str, piece: tuple[str, int, int]) -> pa.Buffer:
        """Raises CannotPublish."""
        ...

    def track(self, move: str, receiver: str, number: int) -> tuple[str, int]:
        """The publication of what has an old part, and its first instant. Raises CannotPublish."""
        ...

    def moved(self, publication: str) -> MovedTo | None:
        """If it was given away: from when on, and to whom."""


class _GivesNothing:
    def describe(self, move: str, receiver: str) -> bytes:
        raise CannotPublish("this node gives nothing to others")

    def describe_copy(self, publication: str) -> bytes:
        raise CannotPublish("this node gives nothing to others")

    def piece(self, move: str, receiver: str, piece: tuple[str, int, int]) -> pa.Buffer:
        raise CannotPublish("this node gives nothing to others")

    def track(self, move: str, receiver: str, number: int) -> tuple[str, int]:
        raise CannotPublish("this node gives nothing to others")

    def moved(self, publication: str) -> MovedTo | None:
        return None


class Balanced(Protocol):
    """Tells what fragments cost, and moves them if a manager wants it."""

    def weigh(self) -> NodeLoad: ...

    def shift(self, asked: Shift) -> None:
        """Raises CannotPublish."""


class Relay(Protocol):
    """Hands streams out, also those whose home is elsewhere."""

    def open(self, asked: Open) -> tuple[str, Past]:
        """The publication, and where it begins; asked again, it answers the same. Raises
        CannotPublish, Unknown."""
        ...

    def acknowledge(self, publication: str, held_from: int) -> None:
        """Nobody below will ask for what was before."""

    def closed(self, publication: str) -> None:
        """A stream is not read any more."""

    def label(self, asked: Label) -> LabelledAs:
        """Raises CannotPublish, Unknown."""
        ...

    def hang(self, asked: Hang) -> Hung:
        """From whom a reader shall have a stream that is at home here. Raises CannotPublish."""
        ...

    def carry(self, asked: Carry) -> None:
        """Raises CannotPublish."""


class _Nobody:
    def publish(
        self, fragment: Fragment, reader: str, number: int, complete: bool, since: int | None
    ) -> tuple[str, Past]:
        raise CannotPublish("this node computes nothing for others")

    def closed(self) -> None: ...

    def move(self, asked: Move) -> None:
        raise CannotPublish("this node reads nothing of others")


class _Reading:
    """A reader's call."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn


class DataServer(flight.FlightServerBase):  # type: ignore[misc]
    """Serves one site, once it is attached; `listen` is `host:port`, port 0 takes a free one. With
    certificates, each reader can ask for its own publications only."""

    def __init__(
        self, listen: str, site: Site | None = None, copies: Path | None = None, **options: Any
    ) -> None:
        """`copies` is where it keeps what other nodes have."""
        self._copies = copies
        self._attached: tuple[Site, Publications] | None = None
        self._publisher: Publisher = _Nobody()
        self._giver: Giver = _GivesNothing()
        self._relay: Relay | None = None
        self._measured: Callable[[], bytes] | None = None
        self._balanced: Balanced | None = None
        self.sent_bytes = 0  # of rows, to readers
        self._reading: set[_Reading] = set()
        self.pace = Pace(None)  # of state that moves
        self._reached: Callable[[Heard], Reached] | None = None
        if site is not None:
            self.attach(site)
        self._closing = threading.Event()
        host, _, _ = listen.rpartition(":")
        self._is_tls = bool(options.get("tls_certificates"))
        if not self._is_tls and not is_loopback(host_and_port(listen)[0]):
            raise BadAddress(
                f"{listen} can be reached from other machines: streams are handed out there with "
                f"certificates only (`thalweg network certificates` makes them)"
            )
        scheme = "grpc+tls" if self._is_tls else "grpc"
        super().__init__(f"{scheme}://{listen}", **options)
        self.address = f"{host}:{self.port}"

    def attach(self, site: Site) -> None:
        self._attached = site, Publications(site)

    def publish_with(self, publisher: Publisher) -> None:
        """Who computes fragments; until then, none are."""
        self._publisher = publisher

    def give_with(self, giver: Giver) -> None:
        self._giver = giver

    def balance_with(self, balanced: Balanced) -> None:
        self._balanced = balanced

    def time_with(self, reached: Callable[[Heard], Reached]) -> None:
        """Who tells readers how streams of this node have gone on."""
        self._reached = reached

    def relay_with(self, relay: Relay) -> None:
        """Who hands streams out; until then, those that are at home here are."""
        self._relay = relay

    def measure_with(self, measured: Callable[[], bytes]) -> None:
        """Who tells planners of this node."""
        self._measured = measured

    @property
    def _site(self) -> Site:
        if self._attached is None:
            raise flight.FlightUnavailableError("the node is about to begin")
        return self._attached[0]

    @property
    def publications(self) -> Publications:
        if self._attached is None:
            raise flight.FlightUnavailableError("the node is about to begin")
        return self._attached[1]

    def shutdown(self) -> None:
        self._closing.set()
        if self._attached is not None:
            self._site.changes.tell()  # who waits for a tick looks up
        super().shutdown()

    # --- what gRPC calls, on threads of its own

    def do_action(self, context: Any, action: Any) -> Iterator[Any]:
        if action.type == OBJECTS:
            told = msgspec.msgpack.encode(self._kept(context, action.body.to_pybytes()))
            return iter([flight.Result(pa.py_buffer(told))])
        try:
            request = decode_request(action.body.to_pybytes())
            self._check_reader(context, _asking(request))
            answer = self._answer(request)
        except msgspec.ValidationError as error:
            answer = Refused(f"a request that this version does not know: {error}")
        except CannotPublish as error:
            answer = Refused(str(error), error.later)
        except Unknown as error:
            answer = Refused(str(error))
        return iter([flight.Result(pa.py_buffer(encode(answer)))])

    def _kept(self, context: Any, body: bytes) -> Answered:
        """What another node has keeps here: it works while this one is about to begin, too."""
        try:
            asked = msgspec.msgpack.decode(body, type=Asked)
            self._check_reader(context, asked.owner)
            if self._copies is None or not asked.owner.replace("-", "_").isidentifier():
                return Answered(error="this node keeps nothing for others")
            kept = KeptObjects(self._copies / asked.owner)
            match asked.what:
                case "put":
                    kept.put(asked.keys[0], asked.content)
                case "create":
                    kept.create(asked.keys[0], asked.content)
                case "get":
                    return Answered(kept.get(asked.keys[0]))
                case "keys":
                    return Answered(keys=tuple(kept.keys(asked.keys[0])))
                case "delete":
                    kept.delete(list(asked.keys))
                case other:
                    return Answered(error=f"there is no {other} of objects")
        except Taken:
            return Answered(error="taken")
        except FileNotFoundError:
            return Answered(error="missing")
        except (ValueError, OSError, msgspec.MsgspecError) as error:
            return Answered(error=str(error) or repr(error))
        return Answered()

    def _answer(self, request: Request) -> Answer:
        match request:
            case Open(stream, reader, number, reach, where, since, _, _, columns):
                if self._relay is not None:
                    name, past = self._relay.open(request)
                else:
                    name, past = self.publications.open(
                        stream, reader, number, reach, where, since, columns
                    )
                return Opened(name, past.watermark, past.complete_from)
            case Acknowledge(publication, needed_from, held_up_at, held_from):
                self._site.engine.readers.acknowledge(publication, needed_from)
                if held_from is not None and self._relay is not None:
                    self._relay.acknowledge(publication, held_from)
                if held_up_at is not None:
                    self.publications.promise_all(publication, held_up_at)
                return Done()
            case Move():
                self._publisher.move(request)
                return Done()
            case Label() if self._relay is not None:
                return self._relay.label(request)
            case Label():
                raise CannotPublish("this node labels nothing")
            case Hang() if self._relay is not None:
                return self._relay.hang(request)
            case Carry() if self._relay is not None:
                self._relay.carry(request)
                return Done()
            case Hang() | Carry():
                raise CannotPublish("this node has no trees")
            case OpenFragment(fragment, reader, number, complete, since):
                name, past = self._publisher.publish(fragment, reader, number, complete, since)
                return Opened(name, past.watermark, past.complete_from)
            case Continue(publication, reader, number, since):
                if self._giver.moved(publication) is not None:
                    raise CannotPublish(f"{publication} has moved", later=True)
                head, _, _ = publication.rpartition(">")
                name = f"{head}>{reader}.{number}"
                self.publications.go_on(publication, name, since)
                return Opened(name, since, since)
            case Heard():
                if self._reached is None:
                    raise CannotPublish("this node is about to begin", later=True)
                return self._reached(request)
            case Measure():
                if self._measured is None:
                    raise CannotPublish("this node is about to begin", later=True)
                return Measures(self._measured())
            case Weigh() if self._balanced is not None:
                return Weighed(self._balanced.weigh())
            case Shift() if self._balanced is not None:
                self._balanced.shift(request)
                return Done()
            case Weigh() | Shift():
                raise CannotPublish("nothing is balanced here")
            case OpenTrack(move, receiver, number):
                name, first = self._giver.track(move, receiver, number)
                return Opened(name, first, first)
            case DescribeCopy(publication):
                return Described(self._giver.describe_copy(publication))
            case Describe(move, receiver):
                return Described(self._giver.describe(move, receiver))
            case Close(publication):
                moved = self._giver.moved(publication)
                self.publications.close(publication)
                if is_fragment(publication):
                    self._publisher.closed()
                elif self._relay is not None:
                    self._relay.closed(publication)
                return moved or Done()

    def do_get(self, context: Any, ticket: Any) -> Any:
        try:
            wanted = decode_ticket(ticket.ticket)
            if isinstance(wanted, Pieces):
                self._check_reader(context, wanted.receiver)
                return flight.GeneratorStream(PIECES, self._state(wanted))
            self._check_reader(context, reader_of(wanted.publication))
            schema = no_rows(self.publications.query(wanted.publication)).to_arrow().schema
        except (msgspec.ValidationError, Unknown) as error:
            raise flight.FlightServerError(str(error), encode(Refused(str(error)))) from None
        return flight.GeneratorStream(schema, self._pieces(context, wanted, schema))

    def _state(self, wanted: Pieces) -> Iterator[pa.RecordBatch]:
        for place, piece in enumerate(wanted.wanted):
            try:
                content = self._giver.piece(wanted.move, wanted.receiver, piece)
            except CannotPublish as error:
                raise flight.FlightServerError(str(error), encode(Refused(str(error)))) from None
            for start in range(0, content.size, _AT_ONCE):
                part = content.slice(start, min(_AT_ONCE, content.size - start))
                self.pace.take(part.size)
                yield piece_batch(place, part)

    def _check_reader(self, context: Any, reader: str) -> None:
        """That who asks is the node that it says it is, by its certificate."""
        if not self._is_tls:
            return
        caller = node_name(context.peer_identity().decode())
        if caller != reader.lower():
            why = f"this is {reader}'s, and the certificate is that of {caller or 'no node'}"
            raise flight.FlightServerError(why, encode(Refused(why)))

    def _pieces(self, context: Any, wanted: Read, schema: pa.Schema) -> Iterator[Any]:
        """What there is, then what follows, until the reader goes."""
        reading = _Reading(self._site.changes.turn())
        self._reading.add(reading)
        try:
            yield from self._said(context, wanted, schema, reading)
        finally:
            reading.turn.over()
            self._reading.discard(reading)

    @property
    def _keep_alive_s(self) -> float:
        """All readers together do not keep a node busy that has nothing to say."""
        return max(KEEP_ALIVE_S, len(self._reading) / MOST_KEPT_ALIVE_A_S)

    def _said(
        self, context: Any, wanted: Read, schema: pa.Schema, reading: _Reading
    ) -> Iterator[Any]:
        since = wanted.since
        nothing = batch_of(no_rows(self.publications.query(wanted.publication)), schema)
        is_heard = False
        while not (self._closing.is_set() or context.is_cancelled()):
            changes = self._site.changes
            seen = changes.told  # before looking, so that nothing slips in behind
            try:
                query = self.publications.query(wanted.publication).name
                for piece in self.publications.read(wanted.publication, since):
                    took = self.publications.took(wanted.publication)
                    batch = batch_of(piece.rows, schema)
                    self.sent_bytes += batch.nbytes
                    reading.turn.over()
                    yield batch, encode(Range(piece.low, piece.upto, took))
                    since = piece.upto
                if not is_heard and since == wanted.since:
                    # Who goes over to this publication is not kept waiting for a row.
                    yield nothing, encode(Range(since, since))
                is_heard = True
                reading.turn.over()
                moved = self._giver.moved(wanted.publication)
                if moved is not None and since >= moved.since:
                    yield nothing, encode(moved)
            except (Unknown, Forgotten) as error:
                raise flight.FlightServerError(str(error), encode(Refused(str(error)))) from None
            except SiteError:
                return
            while not self._closing.is_set():
                turn = changes.wait_for(query, since, seen, self._keep_alive_s)
                if turn is not None:
                    reading.turn = turn
                    break
                yield nothing, encode(Range(since, since))
                if context.is_cancelled():
                    return


def _asking(request: Request) -> str:
    """The node that a request comes from, as it says."""
    match request:
        case (
            Open() | Label() | OpenFragment() | Continue() | Hang() | Carry() | Measure() | Heard()
        ):
            return request.reader
        case Describe() | OpenTrack():
            return request.receiver
        case Weigh() | Shift():
            return request.manager
        case Move():
            return request.publisher
        case _:
            return reader_of(request.publication)
