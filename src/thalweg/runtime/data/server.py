"""A node's publications over Arrow Flight: readers pull at their own pace."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import polars as pl
import pyarrow as pa
from pyarrow import flight

from thalweg.engine.shared.registering import Past
from thalweg.engine.site import Forgotten, SiteError, Unknown
from thalweg.engine.site.publications import Publications, no_rows, reader_of
from thalweg.runtime.data.fragments import Fragment, is_fragment
from thalweg.runtime.data.messages import (
    Acknowledge,
    Answer,
    Close,
    Done,
    Move,
    Open,
    Opened,
    OpenFragment,
    Range,
    Read,
    Refused,
    Request,
    decode_request,
    decode_ticket,
    encode,
)
from thalweg.runtime.transport.addresses import BadAddress, host_and_port, is_loopback
from thalweg.runtime.transport.tls import node_name

if TYPE_CHECKING:
    from thalweg.engine.site import Site

ASK = "thalweg"  # the one action
KEEP_ALIVE_S = 1.0  # so often a quiet publication says that it is there


class CannotPublish(Exception):
    """Why this node does not compute a fragment; `later`: what it needs is away just now."""

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


class _Nobody:
    def publish(
        self, fragment: Fragment, reader: str, number: int, complete: bool, since: int | None
    ) -> tuple[str, Past]:
        raise CannotPublish("this node computes nothing for others")

    def closed(self) -> None: ...

    def move(self, asked: Move) -> None:
        raise CannotPublish("this node reads nothing of others")


class DataServer(flight.FlightServerBase):  # type: ignore[misc]
    """Serves one site, once it is attached; `listen` is `host:port`, port 0 takes a free one. With
    certificates, each reader can ask for its own publications only."""

    def __init__(self, listen: str, site: Site | None = None, **options: Any) -> None:
        self._attached: tuple[Site, Publications] | None = None
        self._publisher: Publisher = _Nobody()
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

    def _answer(self, request: Request) -> Answer:
        match request:
            case Open(stream, reader, number, reach, where, since):
                name, past = self.publications.open(stream, reader, number, reach, where, since)
                return Opened(name, past.watermark, past.complete_from)
            case Acknowledge(publication, needed_from, held_up_at):
                self._site.engine.readers.acknowledge(publication, needed_from)
                if held_up_at is not None:
                    self.publications.promise_all(publication, held_up_at)
                return Done()
            case Move():
                self._publisher.move(request)
                return Done()
            case OpenFragment(fragment, reader, number, complete, since):
                name, past = self._publisher.publish(fragment, reader, number, complete, since)
                return Opened(name, past.watermark, past.complete_from)
            case Close(publication):
                self.publications.close(publication)
                if is_fragment(publication):
                    self._publisher.closed()
                return Done()

    def do_get(self, context: Any, ticket: Any) -> Any:
        try:
            wanted = decode_ticket(ticket.ticket)
            self._check_reader(context, reader_of(wanted.publication))
            schema = no_rows(self.publications.query(wanted.publication)).to_arrow().schema
        except (msgspec.ValidationError, Unknown) as error:
            raise flight.FlightServerError(str(error), encode(Refused(str(error)))) from None
        return flight.GeneratorStream(schema, self._pieces(context, wanted, schema))

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
        since = wanted.since
        nothing = _batch(no_rows(self.publications.query(wanted.publication)), schema)
        while not (self._closing.is_set() or context.is_cancelled()):
            seen = self._site.changes.count  # before looking, so that nothing slips in behind
            try:
                for piece in self.publications.read(wanted.publication, since):
                    yield _batch(piece.rows, schema), encode(Range(piece.low, piece.upto))
                    since = piece.upto
            except (Unknown, Forgotten) as error:
                raise flight.FlightServerError(str(error), encode(Refused(str(error)))) from None
            except SiteError:
                return
            while not (self._closing.is_set() or self._site.changes.wait(seen, KEEP_ALIVE_S)):
                yield nothing, encode(Range(since, since))
                if context.is_cancelled():
                    return


def _asking(request: Request) -> str:
    """The node that a request comes from, as it says."""
    match request:
        case Open() | OpenFragment():
            return request.reader
        case Move():
            return request.publisher
        case _:
            return reader_of(request.publication)


def _batch(rows: pl.DataFrame, schema: pa.Schema) -> pa.RecordBatch:
    # Texts are copied: as views they would take all of the buffers along into which they point.
    table = rows.to_arrow().combine_chunks()
    if table.schema != schema:
        table = table.cast(schema)
    batches = table.to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=schema)
