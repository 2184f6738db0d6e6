"""Errors as problem JSON (RFC 9457): what is wrong, where, and what to do."""

from __future__ import annotations

import math
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from thalweg.api.pieces import Unreadable
from thalweg.cql import CqlError
from thalweg.cql.errors import Diagnostic
from thalweg.engine.shared.ingest.normalise import IngestError
from thalweg.engine.shared.replacing import CannotReplace
from thalweg.engine.sinks.base import SinkError
from thalweg.engine.site import Busy, Forgotten, SiteError, Unknown, WrongUse
from thalweg.engine.sources.errors import SourceError

MEDIA_TYPE = "application/problem+json"

_STATUS: tuple[tuple[type[Exception], int, str], ...] = (  # the first that fits
    (Unknown, 404, "no such name"),
    (WrongUse, 409, "not possible here"),
    (Busy, 429, "the engine is behind"),
    (Forgotten, 410, "no longer kept"),
    (SiteError, 503, "not possible now"),
    (IngestError, 422, "the batch can't be taken"),
    (SourceError, 422, "the source can't be used"),
    (SinkError, 422, "the sink can't be used"),
    (CannotReplace, 409, "the query can't be replaced"),
)


class BadRequest(Exception):
    """A request that can't be read."""

    def __init__(self, detail: str, status: int = 422) -> None:
        super().__init__(detail)
        self.status = status


def problem(
    status: int,
    title: str,
    detail: str,
    *,
    headers: dict[str, str] | None = None,
    **more: Any,
) -> JSONResponse:
    body = {"type": "about:blank", "title": title, "status": status, "detail": detail, **more}
    return JSONResponse(body, status, headers, media_type=MEDIA_TYPE)


def diagnostic_json(
    diagnostic: Diagnostic, text: str, name: str, first_line: int = 1
) -> dict[str, Any]:
    """A mistake with its place, and the same as text with the line and a caret."""
    return {
        "message": diagnostic.message,
        "line": diagnostic.line + first_line - 1,
        "column": diagnostic.column,
        "length": diagnostic.length,
        "hint": diagnostic.hint,
        "severity": diagnostic.severity,
        "text": diagnostic.render(text, name, first_line),
    }


def install(app: FastAPI) -> None:
    """Make the app answer with problems, whatever goes wrong."""

    @app.exception_handler(Unreadable)
    def of_files(_: Request, error: Unreadable) -> JSONResponse:
        errors = [diagnostic_json(d, p.cql, p.name, p.first_line) for p, d in error.found]
        return problem(422, "nothing was applied", error.render(), errors=errors)

    @app.exception_handler(CqlError)
    def of_cql(_: Request, error: CqlError) -> JSONResponse:
        errors = [diagnostic_json(d, error.text, error.name) for d in error.diagnostics]
        return problem(422, "nothing was registered", error.render(), errors=errors)

    @app.exception_handler(RequestValidationError)
    def of_validation(_: Request, error: RequestValidationError) -> JSONResponse:
        parts = [f"{'.'.join(map(str, e['loc'][1:]))}: {e['msg']}" for e in error.errors()]
        return problem(422, "a parameter is wrong", "; ".join(parts))

    @app.exception_handler(HTTPException)
    def of_http(_: Request, error: HTTPException) -> JSONResponse:
        return problem(error.status_code, str(error.detail), str(error.detail))

    @app.exception_handler(BadRequest)
    def of_request(_: Request, error: BadRequest) -> JSONResponse:
        return problem(error.status, "the request can't be read", str(error))

    for kind, status, title in reversed(_STATUS):
        app.add_exception_handler(kind, _handler(status, title))


def _handler(status: int, title: str) -> Any:
    def handle(_: Request, error: Exception) -> JSONResponse:
        headers = None
        if isinstance(error, Busy):
            headers = {"Retry-After": str(max(1, math.ceil(error.retry_after_s)))}
        return problem(status, title, str(error), headers=headers)

    return handle
