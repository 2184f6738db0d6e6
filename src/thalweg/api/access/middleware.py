"""In front of everything: no request without a token, and none beyond its user's role."""

from __future__ import annotations

import logging
import math
import time
from typing import Any

from fastapi import FastAPI, Request
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from thalweg.api.access.access import Access, TooFast
from thalweg.api.access.author import UserAuthor
from thalweg.api.problems import problem
from thalweg.engine.site import Site
from thalweg.engine.site.authors import acting
from thalweg.runtime.network.node import Node
from thalweg.runtime.trust import Denied, Role, TrustError

log = logging.getLogger(__name__)

_SAFE = ("GET", "HEAD", "OPTIONS")
_ASKS = ("/explain", "/query", "/network/plan")  # POST, for their bodies' sake; they change nothing
_LOOK_AGAIN_S = 1.0  # while an answer goes on


class TokenNeeded:
    def __init__(self, app: ASGIApp, access: Access, site: Site, node: Node | None) -> None:
        self._app, self._access, self._site, self._node = app, access, site, node

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        token = Request(scope).headers.get("authorization")
        try:
            user = self._access.user(token)
            user.require(role_for(scope["method"], scope["path"]))
        except (Denied, TrustError) as error:
            await _refusal(error)(scope, receive, send)
            return
        author = UserAuthor(user, self._access, self._site, self._node)
        watched = _Watched(send, self._access, token)
        with acting(author):
            try:
                await self._app(scope, receive, watched)
            except (_Ended, ClientDisconnect):
                if not watched.has_ended:
                    raise


def role_for(method: str, path: str) -> Role:
    path = path.rstrip("/")
    if method in _SAFE or path in _ASKS:
        return Role.OPERATE if path == "/backup" else Role.READ
    return Role.OPERATE if path == "/backup" or path.startswith("/network") else Role.SUBMIT


class _Ended(OSError):
    """The token has been withdrawn, or has expired."""


class _Watched:
    """Ends an answer that goes on for long, if its reader may not read any more."""

    def __init__(self, send: Send, access: Access, token: str | None) -> None:
        self._send, self._access, self._token = send, access, token
        self._looked = time.monotonic()
        self.has_ended = False

    async def __call__(self, message: Message) -> None:
        now = time.monotonic()
        if now - self._looked > _LOOK_AGAIN_S and message["type"] == "http.response.body":
            self._looked = now
            try:
                self._access.user(self._token)
            except (Denied, TrustError):
                self.has_ended = True
                await self._send({"type": "http.response.body", "body": b"", "more_body": False})
                raise _Ended from None
        await self._send(message)


def install(app: FastAPI) -> None:
    """Answers for what users may not do."""
    app.add_exception_handler(Denied, _handle)
    app.add_exception_handler(TooFast, _handle)


def _handle(_: Request, error: Exception) -> JSONResponse:
    return _refusal(error)


def _refusal(error: Any) -> JSONResponse:
    if isinstance(error, TooFast):
        headers = {"Retry-After": str(max(1, math.ceil(error.retry_after_s)))}
        return problem(429, "too many rows", str(error), headers=headers)
    if isinstance(error, Denied):
        if error.is_known:
            return problem(403, "not allowed", str(error))
        headers = {"WWW-Authenticate": 'Bearer realm="thalweg"'}
        return problem(401, "who is it?", str(error), headers=headers)
    log.error("nobody is let in: %s", error)
    detail = "the service can't read who its users are: its log says why"
    return problem(503, "nobody is let in", detail)
