"""A node as a reader of others' publications."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from random import uniform
from typing import Any

import msgspec
import polars as pl
import pyarrow as pa
from pyarrow import flight

from thalweg.runtime.data.messages import (
    Answer,
    Heard,
    MovedTo,
    Pieces,
    Range,
    Read,
    Refused,
    Request,
    decode_answer,
    decode_range,
    encode,
)
from thalweg.runtime.data.server import ASK

_HAPPENED = re.compile(r"(Connection refused|Connection reset|Socket closed|Deadline Exceeded)")
_LONGEST = 200  # characters of an error

ANSWER_WITHIN_S = 30.0  # of a node that is busy; one that is gone refuses at once
CALL_FOR_S = 30.0  # a call that goes on for longer is made anew: so long may a dead link go unseen
_SHORTEST = 0.6  # of that: those that began together are not made anew together


COPY_FOR_S = 3600.0  # state may be large, and a link slow


class Unreachable(Exception):
    """Nobody answers: ask again later."""


class NotServed(Exception):
    """The publisher has said no; asking again is of no use, unless it is `later`."""

    def __init__(self, reason: str, *, later: bool = False) -> None:
        super().__init__(reason)
        self.later = later


class DataClient:
    """One connection to a publisher."""

    def __init__(self, address: str, **options: Any) -> None:
        self.address = address
        self.called = address  # in what people read; who knows the node's name sets it
        scheme = "grpc+tls" if options else "grpc"
        self._client = flight.FlightClient(f"{scheme}://{address}", **options)
        self._reader: Any = None

    def interrupt(self) -> None:
        """End a read that another thread is in; it sees Unreachable."""
        if self._reader is not None:
            self._reader.cancel()

    def close(self) -> None:
        self._client.close()

    def ask(self, request: Request, within_s: float = ANSWER_WITHIN_S) -> Answer:
        """Raises Unreachable, NotServed."""
        options = flight.FlightCallOptions(timeout=within_s)
        with _translated(self.called):
            (found,) = self._client.do_action((ASK, encode(request)), options)
        answer: Answer = decode_answer(found.body.to_pybytes())
        if isinstance(answer, Refused):
            raise NotServed(answer.reason, later=answer.later)
        return answer

    def greet(self) -> None:
        """Whether anybody is there, whatever is answered. Raises Unreachable."""
        with suppress(NotServed):
            self.ask(Heard("", {}))

    def pieces(self, ticket: Pieces) -> Iterator[tuple[int, pa.Buffer]]:
        """Parts of pieces, as they come: which of those that are wanted, and bytes. Raises
        Unreachable, NotServed."""
        options = flight.FlightCallOptions(timeout=COPY_FOR_S)
        with _translated(self.called):
            reader = self._client.do_get(flight.Ticket(encode(ticket)), options)
            try:
                for chunk in reader:
                    place, content = chunk.data.column(0)[0].as_py(), chunk.data.column(1)[0]
                    yield place, content.as_buffer()
            finally:
                reader.cancel()

    def read(self, ticket: Read) -> Iterator[tuple[Range | MovedTo, pl.DataFrame]]:
        """Batches as they come; ends when the call has lasted long enough, to be made anew. Raises
        Unreachable, NotServed."""
        options = flight.FlightCallOptions(timeout=CALL_FOR_S * uniform(_SHORTEST, 1.0))
        with _translated(self.called):
            self._reader = reader = self._client.do_get(flight.Ticket(encode(ticket)), options)
            try:
                while True:
                    try:
                        chunk = reader.read_chunk()
                    except (StopIteration, flight.FlightTimedOutError):
                        return
                    rows = pl.from_arrow(chunk.data)
                    assert isinstance(rows, pl.DataFrame)
                    yield decode_range(chunk.app_metadata.to_pybytes()), rows
            finally:
                self._reader = None
                reader.cancel()


@contextmanager
def _translated(called: str) -> Iterator[None]:
    try:
        yield
    except (flight.FlightUnavailableError, flight.FlightTimedOutError) as error:
        raise Unreachable(f"{called}: {_first_line(error)}") from None
    except flight.FlightServerError as error:
        raise NotServed(_reason(error)) from None
    except flight.FlightError as error:
        raise Unreachable(f"{called}: {_first_line(error)}") from None


def _reason(error: flight.FlightServerError) -> str:
    try:
        answer = decode_answer(error.extra_info)
    except (msgspec.DecodeError, msgspec.ValidationError):
        answer = None
    return answer.reason if isinstance(answer, Refused) else _first_line(error)


def _first_line(error: Exception) -> str:
    """gRPC tells a long story; its end is what happened."""
    line = (str(error).splitlines() or [type(error).__name__])[0]
    found = _HAPPENED.search(line)
    return found[1].lower() if found is not None else line[:_LONGEST]
