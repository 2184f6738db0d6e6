"""/sinks: where queries' rows are written to, beside being kept for readers."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Body, Request, Response

from thalweg.api.access.author import require_own
from thalweg.api.bodies import folder_of
from thalweg.api.routes.queries import site_of

router = APIRouter(tags=["queries"])


@router.get("/sinks")
def list_sinks(request: Request) -> list[dict[str, Any]]:
    """All sinks: query, target, options, and why one was given up."""
    site = site_of(request)
    return [asdict(s) for s in site.sinks.all(site.catalog)]


@router.post("/queries/{name}/sinks", status_code=201)
def add_sink(
    request: Request,
    name: str,
    target: Annotated[str, Body(description="jsonl:FILE, csv:FILE, parquet:FOLDER, kafka:…")],
    folder: Annotated[str | None, Body(description="where a relative path starts")] = None,
    options: Annotated[
        dict[str, str | int | float | bool] | None,
        Body(description="as OPTIONS (…) of CREATE SINK"),
    ] = None,
) -> dict[str, str]:
    """Write the query's rows to a file or folder of the service's machine, exactly once, from the
    next tick on and after every restart."""
    given = {k: _text(v) for k, v in (options or {}).items()}
    site, where = site_of(request), folder_of(folder)
    with site.gate.between_ticks():
        require_own(site, name)
        return {"name": site.write_to(name, target, where, given)}


@router.delete("/queries/{name}/sinks/{sink}", status_code=204)
def remove_sink(request: Request, name: str, sink: str) -> Response:
    site = site_of(request)
    with site.gate.between_ticks():
        require_own(site, name)
        site.detach(name, sink)
    return Response(status_code=204)


def _text(value: str | int | float | bool) -> str:
    """As it would stand in quotes."""
    return str(value).lower() if isinstance(value, bool) else str(value)
