"""Who may change something: not a web page that happens to be open in a browser on this machine.

A page of another site can make a browser POST to a service on the laptop, by its address or by a
name that the page's owner points there. Such requests name themselves: by `Origin`, or by a `Host`
that is not this machine.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from thalweg.api.problems import problem

_SAFE = ("GET", "HEAD", "OPTIONS")
_LOCAL_NAMES = ("localhost", "localhost.localdomain")


class OwnOrigin:
    """Refuses what would change something and comes from elsewhere."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] not in _SAFE:
            refused = _refused(Request(scope))
            if refused is not None:
                answer = problem(403, "not from here", refused)
                await answer(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _refused(request: Request) -> str | None:
    host = request.headers.get("host", "")
    name = _name(host)
    server = request.scope.get("server")
    if server and _is_loopback(server[0]) and name not in _LOCAL_NAMES and not _is_loopback(name):
        return (
            f"the service listens on this machine only, and {host or 'a request without Host'} is "
            "another name: use 127.0.0.1 or localhost"
        )
    origin = request.headers.get("origin")
    if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
        return f"a page of {origin} may not change anything here: send requests without Origin"
    return None


def _name(host: str) -> str:
    return (urlsplit(f"//{host}").hostname or "").lower()


def _is_loopback(name: str) -> bool:
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
