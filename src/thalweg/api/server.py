"""Runs the service until it is told to stop."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable

import uvicorn

from thalweg.api.access import Access
from thalweg.api.service import make_app
from thalweg.engine.site import Site
from thalweg.runtime.network.node import Node
from thalweg.runtime.transport.addresses import is_loopback
from thalweg.runtime.trust import Credentials


class AddressInUse(RuntimeError):
    """A port that somebody else has, or an address where nobody is let in without proof."""


def listen_on(host: str, port: int, *, guarded: bool = False) -> socket.socket:
    """The service's socket; port 0 takes a free one. Who connects before the service is ready waits
    for it. Other machines can reach only a service with certificates and users (`guarded`). Raises
    AddressInUse."""
    if not guarded and not is_loopback(host):
        raise AddressInUse(
            f"{host} can be reached from other machines: a service listens there only as "
            f"`thalweg node` with --certificates and --users (`thalweg network certificates` and "
            f"`thalweg network user add` make them), or on 127.0.0.1 without"
        )
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise AddressInUse(
            f"can't listen on {host}:{port}: {error.strerror}; choose another with --port"
        ) from None
    return listener


class Server(uvicorn.Server):
    """Lets event streams end by themselves at shutdown, instead of waiting for their clients."""

    def __init__(
        self,
        site: Site,
        started: Callable[[], None] = lambda: None,
        stopping: Callable[[], None] = lambda: None,
        node: Node | None = None,
        access: Access | None = None,
        credentials: Credentials | None = None,
    ) -> None:
        self._app = make_app(site, node, access, credentials)
        self._started, self._stopping = started, stopping

        def context(*_: object) -> ssl.SSLContext:
            assert credentials is not None
            return credentials.https()

        config = uvicorn.Config(
            self._app,
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=5,
            # Longer than clients keep what they do not use (httpx: 5 s): who closes first while the
            # other sends makes a request fail.
            timeout_keep_alive=75,
            ssl_context_factory=context if credentials is not None else None,
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
    node: Node | None = None,
    access: Access | None = None,
    credentials: Credentials | None = None,
) -> None:
    """Answer requests until SIGINT or SIGTERM."""
    Server(site, started, stopping, node, access, credentials).run(sockets=[listener])
