"""/queries: submit, list, stop, explain, and read results."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import PlainTextResponse, StreamingResponse
from starlette.concurrency import run_in_threadpool

from thalweg.api.applying import apply
from thalweg.api.bodies import NDJSON, pieces_of, submission_of
from thalweg.api.bulk import submit_each
from thalweg.api.changes import changes_json, verb_of
from thalweg.api.events import events, lines_with_ids
from thalweg.api.execute import execute
from thalweg.api.network.deployed import Placing
from thalweg.api.network.peers import running
from thalweg.api.problems import BadRequest, diagnostic_json
from thalweg.engine.site import Position, Site, WrongUse
from thalweg.engine.site.explanation import Explanation
from thalweg.engine.site.now import Content
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
    runs = running(request.app.state.node, "thalweg-eager" in request.headers)
    outcomes = await run_in_threadpool(submit_each, site_of(request), pieces, runs)
    return {
        "done": sum(len(o.changes) + len(o.notes) + o.written for o in outcomes),
        "failed": sum(len(o.errors) for o in outcomes),
        "results": [{"name": p.name, **asdict(o)} for p, o in zip(pieces, outcomes, strict=True)],
    }


@router.post("/apply", openapi_extra=TEXTS_BODY)
async def apply_texts(request: Request, dry_run: bool = False) -> dict[str, Any]:
    """Make the texts what stands, in one transaction: `steps` says what was (or, with `dry_run`,
    would be) created, altered, replaced, recreated and dropped, and what state is lost."""
    if request.app.state.node is not None:
        raise WrongUse("files describe one service, and this is a node of a network: use submit")
    pieces = await pieces_of(request)
    done = await run_in_threadpool(apply, site_of(request), pieces, dry_run=dry_run)
    return {"steps": [s.data() for s in done.steps], "unchanged": done.unchanged}


async def run_submission(request: Request) -> dict[str, Any]:
    given = await submission_of(request)
    runs: Any = running(request.app.state.node, given.eager) or site_of(request)
    if given.placement is not None:
        runs = Placing(request.app.state.node, given.placement)
    script = await run_in_threadpool(execute, runs, given.cql, name=given.name, folder=given.folder)
    return done_json(site_of(request), script, given.cql, given.name)


def done_json(site: Site, script: Script, text: str, name: str) -> dict[str, Any]:
    """What a script has done, as lists of names."""
    return {
        "queries": [q.name for q in script.queries],
        "created": [c.definition.name for c in script.changes if verb_of(c) == "created"],
        "dropped": [c.definition.name for c in script.changes if c.dropped],
        "changes": changes_json(script),
        "notes": list(script.notes),
        "written": len(script.writes),
        "warnings": [diagnostic_json(w, text, name) for w in script.warnings],
        "notices": [asdict(n) for n in site.notices(script.queries)],
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
    that row. 410 means that rows behind the id are no longer kept. Whoever starts without an id,
    and so in the middle, is told the instant from which all rows are there: as `complete_from`, in
    the header `Thalweg-Complete-From`, or in a first event `gap`. What peers lack is said with the
    rows: `completeness`, an estimate, where they had no room for all tuples, `lost` sources, and
    `possibly_incomplete` where rows come at once.
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
    since = site.complete_from(query.name) if position == START else None
    lacking = site.lacking(query.name)
    if wanted == "ndjson":
        headers = {"Thalweg-Next": str(behind)}
        if since is not None:
            headers["Thalweg-Complete-From"] = since
        if "possibly_incomplete" in lacking:
            headers["Thalweg-Possibly-Incomplete"] = "true"
        if "completeness" in lacking:
            headers["Thalweg-Completeness"] = str(lacking["completeness"])
        return Response("".join(lines), media_type=NDJSON, headers=headers)
    rows = ",".join(line.rstrip("\n") for line in lines)
    told = f'"next":"{behind}","complete_from":{json.dumps(since)}'
    told += "".join(f',"{key}":{json.dumps(value)}' for key, value in lacking.items())
    return Response(f'{{"rows":[{rows}],{told}}}', media_type="application/json")


@router.get("/queries/{name}/content")
def content(request: Request, name: str) -> Response:
    """What a query's result holds at the last instant that is final: `at`, and the rows then."""
    return content_json(site_of(request).content(name))


@router.post("/query", openapi_extra=CQL_BODY)
async def select(request: Request) -> Response:
    """A SELECT over results, relations and windows, answered once, as of the last instant that is
    final for all that it reads."""
    given = await submission_of(request)
    return content_json(await run_in_threadpool(site_of(request).select, given.cql))


def content_json(found: Content) -> Response:
    head = {"at": found.at, "columns": [(f.name, str(f.type)) for f in found.schema]}
    rows = ",".join(found.json_lines())
    body = f'{json.dumps(head, ensure_ascii=False)[:-1]}, "rows": [{rows}]}}'
    return Response(body, media_type="application/json")


def _some_lines(reader: Reader, after: Position, limit: int) -> tuple[list[str], Position]:
    """Rows behind a position, at most `limit` of them; and where to go on."""
    frontier = reader.frontier()
    lines: list[str] = []
    for page in reader.pages(after, frontier):
        ids = (*page.ids(), *([page.last] if page.mark is not None else []))
        for id_, line in zip(ids, lines_with_ids(page), strict=True):
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
