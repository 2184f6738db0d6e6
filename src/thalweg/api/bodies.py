"""Request bodies: CQL as text or JSON, rows as JSON, JSON lines or Arrow."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import polars as pl
import pyarrow as pa
from fastapi import Request

from thalweg.api.bulk import Piece
from thalweg.api.problems import BadRequest
from thalweg.engine.sources.rows import frame_of
from thalweg.plan.catalog import StreamDef

LARGEST_BODY = 64 << 20
ARROW = "application/vnd.apache.arrow.stream"
NDJSON = "application/x-ndjson"


class Submission(NamedTuple):
    cql: str
    name: str
    folder: Path | None


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
            raise BadRequest(f"the text is not UTF-8: {error}") from None
    given = _json(body)
    if not isinstance(given, Mapping) or not isinstance(given.get("cql"), str):
        raise BadRequest('send CQL as text/plain, or as JSON: {"cql": "CREATE …"}')
    folder = given.get("folder")
    return Submission(
        given["cql"], str(given.get("name", "<cql>")), Path(folder) if folder else None
    )


async def pieces_of(request: Request) -> list[Piece]:
    body = await body_of(request)
    try:
        return msgspec.json.decode(body, type=_Pieces).texts
    except msgspec.DecodeError as error:
        raise BadRequest(
            f'send texts as JSON: {{"texts": [{{"cql": "CREATE …", "name": "a.cql"}}]}} ({error})'
        ) from None


def rows_of(stream: StreamDef, content_type: str, body: bytes) -> pl.DataFrame:
    """The batch that a body holds, by its content type."""
    if content_type == ARROW:
        try:
            table = pa.ipc.open_stream(body).read_all()
        except pa.ArrowInvalid as error:
            raise BadRequest(f"the body is no Arrow stream: {error}") from None
        return frame_of(stream, table)
    if content_type == NDJSON:
        return frame_of(stream, [_json(line) for line in body.splitlines() if line.strip()])
    if content_type in ("application/json", ""):
        given = _json(body)
        return frame_of(stream, given if isinstance(given, list) else [given])
    raise BadRequest(
        f"rows come as application/json, {NDJSON} or {ARROW}, not as {content_type}", 415
    )


def _json(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise BadRequest(f"the body is no JSON: {error}") from None
