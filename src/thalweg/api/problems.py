"""Errors as problem JSON (RFC 9457): what is wrong, where, and what to do."""

from __future__ import annotations

import logging
import math
import sqlite3
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from thalweg.api.pieces import Unreadable
from thalweg.cql import CqlError
from thalweg.cql.errors import Diagnostic
from thalweg.engine.failures import FAILURES, will_pass
from thalweg.engine.shared.ingest.normalise import IngestError
from thalweg.engine.shared.registering import NameTaken
from thalweg.engine.shared.replacing import CannotReplace
from thalweg.engine.sinks.base import SinkError
from thalweg.engine.site import Busy, Forgotten, SiteError, Unknown, WrongUse
from thalweg.engine.sources.errors import SourceError

log = logging.getLogger(__name__)

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
    (NameTaken, 409, "the name is not to be had"),
)


_LONGEST_LINE = 300
_MOST_ERRORS = 20  # of one text


def first_line(error: BaseException | str) -> str:
    """An error in at most one line that a person can read, whatever it quotes."""
    lines = str(error).strip().splitlines()
    line = "".join(c if c.isprintable() else " " for c in lines[0]) if lines else ""
    return line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}…"


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


class Guard:
    """Answers with a problem where nothing else has: no request ends without an answer, and a
    failure that nobody expected is logged in one line."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_begun = False

        async def sent(message: Message) -> None:
            nonlocal has_begun
            has_begun = has_begun or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, sent)
        except FAILURES as error:
            if scope["type"] != "http" or has_begun:
                raise
            answer = _unexpected(error, f"{scope['method']} {scope['path']}")
            await answer(scope, receive, send)


def _unexpected(error: BaseException, request: str) -> JSONResponse:
    if will_pass(error) or isinstance(error, sqlite3.OperationalError):
        detail = f"nothing was kept of this request: {first_line(error)}"
        return problem(503, "not possible now", detail, headers={"Retry-After": "5"})
    log.error("%s failed: %s: %s", first_line(request), type(error).__name__, first_line(error))
    log.debug("", exc_info=error)
    detail = f"{type(error).__name__}: {first_line(error)}"
    return problem(500, "an error of the service itself", detail)


def install(app: FastAPI) -> None:
    """Make the app answer with problems, whatever goes wrong."""
    app.add_middleware(Guard)

    @app.exception_handler(Unreadable)
    def of_files(_: Request, error: Unreadable) -> JSONResponse:
        errors = [diagnostic_json(d, p.cql, p.name, p.first_line) for p, d in error.found]
        return problem(422, "nothing was applied", error.render(), errors=errors)

    @app.exception_handler(CqlError)
    def of_cql(_: Request, error: CqlError) -> JSONResponse:
        shown = error.diagnostics[:_MOST_ERRORS]
        errors = [diagnostic_json(d, error.text, error.name) for d in shown]
        return problem(422, "nothing was registered", error.render(), errors=errors)

    @app.exception_handler(RequestValidationError)
    def of_validation(_: Request, error: RequestValidationError) -> JSONResponse:
        parts = [f"{'.'.join(map(str, e['loc'][1:]))}: {e['msg']}" for e in error.errors()]
        return problem(422, "a parameter is wrong", first_line("; ".join(parts)))

    @app.exception_handler(HTTPException)
    def of_http(_: Request, error: HTTPException) -> JSONResponse:
        detail = first_line(str(error.detail))
        return problem(error.status_code, detail, detail, headers=dict(error.headers or {}))

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
