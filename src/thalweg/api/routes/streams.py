"""/streams: define, list, drop, push tuples, promise progress."""

from __future__ import annotations

from collections import deque
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Body, Query, Request, Response

from thalweg.api.access.author import require_own, take_rows
from thalweg.api.bodies import ARROW, NDJSON, body_of, line_numbers, media_type, rows_of
from thalweg.api.problems import BadRequest
from thalweg.api.routes.queries import CQL_BODY, run_submission, site_of
from thalweg.engine.shared.state.names import LATE, REJECTED, side_file
from thalweg.engine.site import Busy
from thalweg.engine.site.feeds import RETRY_AFTER_S
from thalweg.plan.catalog import StreamDef

router = APIRouter(tags=["streams"])

PATIENCE_S = 10.0  # a push waits so long for room before it is refused
AT_ONCE, MOST_WAITING = 16, 32  # pushes
_ROWS_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": {"type": "array", "items": {"type": "object"}}},
            NDJSON: {"schema": {"type": "string"}},
            ARROW: {"schema": {"type": "string", "format": "binary"}},
        },
    }
}
Partition = Annotated[int, Query(ge=0, lt=1 << 18, description="of the source; each keeps order")]


@router.post("/streams", status_code=201, openapi_extra=CQL_BODY)
async def define(request: Request) -> dict[str, Any]:
    """Run CQL statements, such as CREATE STREAM (the same as POST /queries)."""
    return await run_submission(request)


@router.get("/streams")
def list_streams(request: Request) -> list[dict[str, Any]]:
    """All streams and relations with their watermarks, backlogs and counts."""
    return [asdict(s) for s in site_of(request).streams()]


@router.get("/views")
def list_views(request: Request) -> list[dict[str, Any]]:
    """All views: columns and text."""
    return [
        {"name": v.name, "columns": [(f.name, str(f.type)) for f in v.plan.schema], "text": v.text}
        for v in site_of(request).catalog.views()
    ]


@router.get("/streams/{name}")
def show_stream(request: Request, name: str) -> dict[str, Any]:
    site = site_of(request)
    wanted = site.stream(name).name
    return next(asdict(s) for s in site.streams() if s.name == wanted)


@router.delete("/streams/{name}", status_code=204)
def drop_stream(request: Request, name: str) -> Response:
    """Drop a stream that no query uses."""
    site_of(request).drop_stream(name)
    return Response(status_code=204)


@router.post("/streams/{name}/tuples", openapi_extra=_ROWS_BODY)
async def push(
    request: Request,
    name: str,
    batch_id: Annotated[str | None, Query(description="a repeated id counts once")] = None,
    partition: Partition = 0,
) -> dict[str, Any]:
    """Push tuples; durable when it answers. 429 with Retry-After while the engine is behind, or
    for rows beyond a user's limit."""
    site = site_of(request)
    stream = site.stream(name)
    pushers: CapacityLimiter = request.app.state.pushers
    # Bodies wait in memory: so not too many of them, and before they are read.
    if pushers.statistics().tasks_waiting >= MOST_WAITING:
        raise Busy(site.engine.landing.backlog(), RETRY_AFTER_S)
    body = await body_of(request)
    kind = media_type(request)

    def land() -> dict[str, Any]:
        batch = rows_of(stream, kind, body)
        take_rows(batch.height)
        receipt = site.push(
            stream.name, batch, partition=partition, batch_id=batch_id, patience_s=PATIENCE_S
        )
        found = asdict(receipt)
        if kind == NDJSON and receipt.row is not None:
            found["line"] = line_numbers(body)[receipt.row]
        return found

    # Threads of their own: pushes that wait for room must not keep others from being answered.
    return await to_thread.run_sync(land, limiter=pushers)


@router.post("/streams/{name}/heartbeat", status_code=204)
def heartbeat(
    request: Request,
    name: str,
    at: Annotated[int | str, Body(embed=True, description="an instant, or an ISO date and time")],
    partition: Partition = 0,
) -> Response:
    """Promise that no tuple below this instant will come."""
    site = site_of(request)
    stream = site.stream(name)
    site.heartbeat(stream.name, _instant(stream, at), partition=partition)
    return Response(status_code=204)


@router.post("/streams/{name}/finish", status_code=204)
def finish(request: Request, name: str) -> Response:
    """Promise that no tuple will come any more."""
    site = site_of(request)
    require_own(site, name)
    site.finish(name)
    return Response(status_code=204)


@router.get("/streams/{name}/{kind}")
def set_aside(
    request: Request,
    name: str,
    kind: Literal["late", "rejects"],
    limit: Annotated[int, Query(ge=1, le=10_000)] = 100,
) -> Response:
    """The last tuples that came too late, or that were rejected, with the reason; as JSON lines."""
    site = site_of(request)
    file = side_file(site.stream(name).name, LATE if kind == "late" else REJECTED)
    path = site.engine.folder / file
    lines: deque[str] = deque(maxlen=limit)
    if path.exists():
        with path.open() as found:
            lines.extend(found)
    return Response("".join(lines), media_type=NDJSON)


def _instant(stream: StreamDef, at: int | str) -> int:
    if isinstance(at, int):
        return at
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        raise BadRequest(f"{at!r} is neither an instant nor an ISO date and time") from None
    if stream.timestamp_type.is_integer:
        raise BadRequest(f"{stream.name} counts its time: send the instant as a number")
    utc = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    since = utc - datetime(1970, 1, 1, tzinfo=UTC)
    micros = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    return micros // stream.resolution_us
