"""Runs the service until it is told to stop."""

from __future__ import annotations

import socket
from collections.abc import Callable

import uvicorn

from thalweg.api.service import make_app
from thalweg.engine.site import Site


class AddressInUse(RuntimeError):
    """A port that somebody else has."""


def listen_on(host: str, port: int) -> socket.socket:
    """The service's socket; port 0 takes a free one. Who connects before the service is ready waits
    for it. Raises AddressInUse."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise AddressInUse(f"can't listen on {host}:{port}: {error.strerror}") from None
    return listener


class Server(uvicorn.Server):
    """Lets event streams end by themselves at shutdown, instead of waiting for their clients."""

    def __init__(
        self,
        site: Site,
        started: Callable[[], None] = lambda: None,
        stopping: Callable[[], None] = lambda: None,
    ) -> None:
        self._app = make_app(site)
        self._started, self._stopping = started, stopping
        config = uvicorn.Config(
            self._app, log_level="warning", access_log=False, timeout_graceful_shutdown=5
        )
        super().__init__(config)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._stopping()
        self._app.state.tick_signal.close()
        await super().shutdown(sockets)


def serve(
    site: Site,
    listener: socket.socket,
    started: Callable[[], None],
    stopping: Callable[[], None] = lambda: None,
) -> None:
    """Answer requests until SIGINT or SIGTERM."""
    Server(site, started, stopping).run(sockets=[listener])
