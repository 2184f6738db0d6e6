"""Request bodies: CQL as text or JSON, rows as JSON, JSON lines or Arrow."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import msgspec
import polars as pl
import pyarrow as pa
from fastapi import Request

from thalweg.api.pieces import Piece
from thalweg.api.problems import BadRequest, first_line
from thalweg.engine.shared.ingest.normalise import RAW, REFUSED
from thalweg.engine.sources.arrow import with_refused
from thalweg.engine.sources.rows import columns_of, frame_of
from thalweg.plan.catalog import StreamDef
from thalweg.plan.types import Kind

LARGEST_BODY = 64 << 20
ARROW = "application/vnd.apache.arrow.stream"
NDJSON = "application/x-ndjson"
_PLAIN: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
_EXACT: msgspec.json.Decoder[Any] = msgspec.json.Decoder(float_hook=Decimal)
_SHOWN = 80  # characters of a line that is none


T = TypeVar("T")


class Submission(NamedTuple):
    cql: str
    name: str
    folder: Path | None
    placement: str | None = None  # of its one query, as a node of the network has planned it
    eager: bool = False  # results of peers at once


class _Pieces(msgspec.Struct):
    texts: list[Piece]


async def body_of(request: Request) -> bytes:
    """The whole body, if it is not too large to hold."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > LARGEST_BODY:
            raise BadRequest(f"the body has more than {LARGEST_BODY >> 20} MiB: send less", 413)
        parts.append(part)
    return b"".join(parts)


def media_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def submission_of(request: Request) -> Submission:
    body = await body_of(request)
    if media_type(request) != "application/json":
        try:
            return Submission(body.decode(), "<cql>", None)
        except UnicodeDecodeError as error:
            raise BadRequest(f"the text is not UTF-8: {first_line(error)}") from None
    given = _json(body)
    if not isinstance(given, Mapping) or not isinstance(given.get("cql"), str):
        raise BadRequest('send CQL as text/plain, or as JSON: {"cql": "CREATE …"}')
    folder = given.get("folder")
    placement = given.get("placement")
    return Submission(
        given["cql"],
        str(given.get("name", "<cql>")),
        folder_of(folder),
        placement if isinstance(placement, str) else None,
        given.get("eager") is True,
    )


async def decoded(request: Request, kind: type[T]) -> T:
    """A body that is one structure, as JSON."""
    body = await body_of(request)
    return cast("T", _json(body, msgspec.json.Decoder(kind)))


def folder_of(given: Any) -> Path | None:
    """Where relative paths start, if the request says so."""
    if not given:
        return None
    try:
        return Path(given).resolve()
    except (TypeError, OSError, ValueError, RuntimeError) as error:
        raise BadRequest(f"the folder can't be used: {first_line(error)}") from None


async def pieces_of(request: Request) -> list[Piece]:
    body = await body_of(request)
    try:
        return msgspec.json.decode(body, type=_Pieces).texts
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise BadRequest(
            'send texts as JSON: {"texts": [{"cql": "CREATE …", "name": "a.cql"}]} '
            f"({first_line(error)})"
        ) from None


def rows_of(stream: StreamDef, content_type: str, body: bytes) -> pl.DataFrame:
    """The batch that a body holds, by its content type."""
    if content_type == ARROW:
        try:
            return frame_of(stream, pa.ipc.open_stream(body).read_all())
        except (pa.ArrowException, OSError, ValueError) as error:
            raise BadRequest(f"the body is not an Arrow stream: {first_line(error)}") from None
    # A DECIMAL must not pass through a float on its way.
    is_exact = any(sql.kind is Kind.DECIMAL for sql in columns_of(stream).values())
    decoder = _EXACT if is_exact else _PLAIN
    if content_type == NDJSON:
        return _lines(stream, body, decoder)
    if content_type in ("application/json", ""):
        given = _json(body, decoder)
        return frame_of(stream, given if isinstance(given, list) else [given])
    raise BadRequest(
        f"rows come as application/json, {NDJSON} or {ARROW}, not as {content_type}", 415
    )


def line_numbers(body: bytes) -> list[int]:
    """Of JSON lines: which line, from 1, each row is."""
    return [number for number, line in enumerate(body.splitlines(), 1) if line.strip()]


def _lines(stream: StreamDef, body: bytes, decoder: msgspec.json.Decoder[Any]) -> pl.DataFrame:
    """Rows of JSON lines; a line that is none is refused in its place, and the others count."""
    rows: list[Any] = []
    reasons: dict[int, str] = {}
    raw: dict[int, str | None] = {}
    for line in filter(bytes.strip, body.splitlines()):
        row = _row(line, decoder)
        if row is None:
            text = line.decode(errors="replace")
            reasons[len(rows)], raw[len(rows)] = f"not a JSON object: {text[:_SHOWN]!r}", text
        rows.append(row or {})
    frame = frame_of(stream, rows)
    if not reasons:
        return frame
    if REFUSED in frame.columns:  # for other reasons, in other rows
        known = dict(zip(range(frame.height), frame[REFUSED], strict=True))
        texts = dict(zip(range(frame.height), frame[RAW], strict=True))
        reasons = {i: r for i, r in {**known, **reasons}.items() if r is not None}
        raw = {i: t for i, t in {**texts, **raw}.items() if t is not None}
        frame = frame.drop(REFUSED, RAW)
    return with_refused(frame, reasons, raw)


def _row(line: bytes, decoder: msgspec.json.Decoder[Any]) -> dict[str, Any] | None:
    try:
        found = decoder.decode(line)
    except (msgspec.MsgspecError, ValueError, ArithmeticError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _json(body: bytes, decoder: msgspec.json.Decoder[Any] = _PLAIN) -> Any:
    try:
        return decoder.decode(body)
    except (msgspec.MsgspecError, ValueError, ArithmeticError) as error:
        raise BadRequest(f"the body is not JSON: {first_line(error)}") from None
    except RecursionError:
        raise BadRequest("the body's JSON is nested too deeply") from None
