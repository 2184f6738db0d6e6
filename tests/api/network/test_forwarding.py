"""Questions to other nodes."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator

import pytest
from starlette.requests import Request

from thalweg.api.network.forwarding import Forwarding
from thalweg.runtime.network.directory import NodeInfo


@pytest.fixture
def silent() -> Iterator[NodeInfo]:
    """Takes connections, as the kernel does for a process that is paused, and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        http = f"http://127.0.0.1:{server.getsockname()[1]}"
        yield NodeInfo("n2", "n2", http, "127.0.0.1:1")


def asked() -> Request:
    scope = {"type": "http", "method": "GET", "headers": [], "query_string": b""}

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": b"", "more_body": False}

    return Request({**scope, "path": "/queries", "raw_path": b"/queries"}, receive)


def test_a_node_that_is_down_is_not_waited_for(silent: NodeInfo) -> None:
    """It is, while it may only be busy; so the question lasts until it is known to be down."""
    known = iter((True, False, False))

    async def ask() -> None:
        forwarding = Forwarding(lambda _: next(known))
        try:
            async with asyncio.timeout(20):  # its own patience is longer
                ((_, told),) = await forwarding.get_all(asked(), [silent], "/queries")
                assert told is None
                answer = await forwarding.forward(asked(), silent)
                assert answer.status_code == 503
                assert b"node n2" in answer.body
        finally:
            await forwarding.close()

    asyncio.run(ask())
    assert list(known) == []
