"""/queries: submit, list, stop, explain, and read results."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import PlainTextResponse, StreamingResponse
from starlette.concurrency import run_in_threadpool

from thalweg.api.bodies import NDJSON, pieces_of, submission_of
from thalweg.api.bulk import submit_each
from thalweg.api.events import events, lines_with_ids
from thalweg.api.execute import execute
from thalweg.api.problems import BadRequest, diagnostic_json
from thalweg.engine.site import Position, Site
from thalweg.engine.site.explanation import Explanation
from thalweg.engine.site.positions import START, parse_position
from thalweg.engine.site.reading import Reader
from thalweg.engine.site.scripts import Script

router = APIRouter(tags=["queries"])

CQL_BODY = {
    "requestBody": {
        "required": True,
        "description": "CQL statements, separated by semicolons. All of them count, or none.",
        "content": {
            "text/plain": {"schema": {"type": "string"}},
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["cql"],
                    "properties": {
                        "cql": {"type": "string"},
                        "name": {"type": "string", "description": "how messages call the text"},
                        "folder": {"type": "string", "description": "where its paths start"},
                    },
                }
            },
        },
    }
}
TEXTS_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["texts"],
                    "properties": {
                        "texts": {
                            "type": "array",
                            "items": {
                                "type": "object",
                                "required": ["cql", "name"],
                                "properties": {
                                    "cql": {"type": "string"},
                                    "name": {"type": "string"},
                                    "folder": {"type": "string"},
                                    "first_line": {"type": "integer", "default": 1},
                                },
                            },
                        }
                    },
                }
            }
        },
    }
}
Form = Literal["logical", "physical", "spark", "shared"]
TextOrJson = Annotated[Literal["text", "json"], Query(alias="format")]


def site_of(request: Request) -> Site:
    found: Site = request.app.state.site
    return found


@router.post("/queries", status_code=201, openapi_extra=CQL_BODY)
async def submit(request: Request) -> dict[str, Any]:
    """Run CQL statements: CREATE, DROP, or queries as such."""
    return await run_submission(request)


@router.post("/queries/bulk", openapi_extra=TEXTS_BODY)
async def submit_many(request: Request) -> dict[str, Any]:
    """Run the statements of many texts, each for itself: those with a mistake are left out, and
    listed under `errors`. `results` has an entry for each text; `done` and `failed` count
    statements."""
    pieces = await pieces_of(request)
    outcomes = await run_in_threadpool(submit_each, site_of(request), pieces)
    return {
        "done": sum(len(o.created) + len(o.dropped) + o.written for o in outcomes),
        "failed": sum(len(o.errors) for o in outcomes),
        "results": [{"name": p.name, **asdict(o)} for p, o in zip(pieces, outcomes, strict=True)],
    }


async def run_submission(request: Request) -> dict[str, Any]:
    given = await submission_of(request)
    script = await run_in_threadpool(
        execute, site_of(request), given.cql, name=given.name, folder=given.folder
    )
    return done_json(script, given.cql, given.name)


def done_json(script: Script, text: str, name: str) -> dict[str, Any]:
    """What a script has done, as lists of names."""
    created = [c.definition.name for c in script.changes if not c.dropped]
    return {
        "queries": [q.name for q in script.queries],
        "created": created,
        "dropped": [c.definition.name for c in script.changes if c.dropped],
        "written": len(script.writes),
        "warnings": [diagnostic_json(w, text, name) for w in script.warnings],
    }


@router.get("/queries")
def list_queries(request: Request) -> list[dict[str, Any]]:
    """All standing queries with their state, rows and cost."""
    return [asdict(q) for q in site_of(request).queries()]


@router.get("/queries/{name}")
def show_query(request: Request, name: str) -> dict[str, Any]:
    site = site_of(request)
    wanted = site.query(name).name
    return next(asdict(q) for q in site.queries() if q.name == wanted)


@router.delete("/queries/{name}", status_code=204)
def stop_query(request: Request, name: str) -> Response:
    """Drop a query, with its results and state."""
    site_of(request).stop(name)
    return Response(status_code=204)


@router.get("/queries/{name}/explain")
def explain_query(
    request: Request, name: str, form: Form = "logical", wanted: TextOrJson = "text"
) -> Response:
    """How a query is computed."""
    return _explained(site_of(request), site_of(request).query(name).name, form, wanted)


@router.post("/explain", openapi_extra=CQL_BODY)
async def explain_text(
    request: Request, form: Form = "logical", wanted: TextOrJson = "text"
) -> Response:
    """How the queries of a text would be computed; nothing is registered."""
    text = (await submission_of(request)).cql
    return await run_in_threadpool(_explained, site_of(request), text, form, wanted)


@router.get("/queries/{name}/why/{other}")
def why(request: Request, name: str, other: str, wanted: TextOrJson = "text") -> Response:
    """Why two standing queries share work, or do not."""
    return explanation(site_of(request).explain_why(name, other), wanted)


def _explained(site: Site, what: str, form: str, wanted: str) -> Response:
    return explanation(site.explain(what, form), wanted)


def explanation(found: Explanation, wanted: str) -> Response:
    if wanted == "text":
        return PlainTextResponse(found.text + "\n")
    return Response(found.json(), media_type="application/json")


@router.get("/queries/{name}/results")
async def results(
    request: Request,
    name: str,
    wanted: Annotated[Literal["sse", "json", "ndjson"], Query(alias="format")] = "sse",
    after: Annotated[str | None, Query(description="an id: rows behind it")] = None,
    limit: Annotated[int, Query(ge=1, le=100_000, description="json, ndjson only")] = 10_000,
    last_event_id: Annotated[str | None, Header()] = None,
) -> Response:
    """A query's rows, as server-sent events that go on for as long as the query stands, or what
    there is now as JSON (`rows`, and `next` to ask again with) or JSON lines.

    Every row has an id, `run.instant.ordinal`. With `Last-Event-ID` or `after` it goes on behind
    that row. 410 means that rows behind the id are no longer kept.
    """
    site = site_of(request)
    query = site.query(name)
    position = _position(last_event_id or after)
    reader = site.reader(query)
    reader.check(position)
    if wanted == "sse":
        stream = events(site, request.app.state.tick_signal, query, position)
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(stream, media_type="text/event-stream", headers=headers)
    lines, behind = await run_in_threadpool(_some_lines, reader, position, limit)
    if wanted == "ndjson":
        return Response("".join(lines), media_type=NDJSON, headers={"Thalweg-Next": str(behind)})
    rows = ",".join(line.rstrip("\n") for line in lines)
    return Response(f'{{"rows":[{rows}],"next":"{behind}"}}', media_type="application/json")


def _some_lines(reader: Reader, after: Position, limit: int) -> tuple[list[str], Position]:
    """Rows behind a position, at most `limit` of them; and where to go on."""
    frontier = reader.frontier()
    lines: list[str] = []
    for page in reader.pages(after, frontier):
        for id_, line in zip(page.ids(), lines_with_ids(page), strict=True):
            if len(lines) == limit:
                return lines, after
            lines.append(line)
            after = id_
    return lines, max(after, frontier)


def _position(text: str | None) -> Position:
    if text is None:
        return START
    try:
        return parse_position(text)
    except ValueError as error:
        raise BadRequest(str(error)) from None
