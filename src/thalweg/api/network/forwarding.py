"""Requests that another node answers: passed on as they are, and so are the answers.

They carry the user's own token, so that each node judges for itself; and with certificates they go
only to a node that proves to be the one that is meant.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import Any

import httpx
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from thalweg.api.problems import problem
from thalweg.runtime.network.directory import NodeInfo
from thalweg.runtime.transport.tls import host_name
from thalweg.runtime.trust import Credentials

HERE = "thalweg-here"  # a header: this node itself is asked, and nobody else
AT = "thalweg-at"  # a header: the node by whose eyes the network is to be seen
_NOT_PASSED_ON = {"host", "content-length", "transfer-encoding", "connection", "origin", AT}
_IDLE_S = 2.0  # before the other side closes a connection that nobody uses
_CONNECT_S, _SILENT_S = 3.0, 30.0  # an event stream says something every ten seconds
_LOOK_EVERY_S = 1.0  # whether a node that has not answered yet is down


class Forwarding:
    """One HTTP client to all other nodes; `is_up` says what is known of one, by its name."""

    def __init__(
        self, is_up: Callable[[str], bool], credentials: Credentials | None = None
    ) -> None:
        self._is_up = is_up
        self._is_tls = credentials is not None
        self._client = httpx.AsyncClient(
            verify=credentials.tls().client if credentials is not None else True,
            timeout=httpx.Timeout(_SILENT_S, connect=_CONNECT_S),
            limits=httpx.Limits(max_connections=None, keepalive_expiry=_IDLE_S),
            trust_env=False,
        )

    async def close(self) -> None:
        await self._client.aclose()

    async def forward(
        self,
        request: Request,
        node: NodeInfo,
        body: bytes | None = None,
        *,
        through: bool = False,
    ) -> Response:
        """What the node answers, for itself or (`through`) for the network; a problem if it does
        not answer."""
        headers = {k: v for k, v in request.headers.items() if k not in _NOT_PASSED_ON}
        if not through:
            headers[HERE] = "1"
        # As it came: a path that begins with // must not become another host's address.
        path: bytes = request.scope["raw_path"]
        query: bytes = request.scope["query_string"]
        url = httpx.URL(node.http).copy_with(raw_path=path + b"?" + query if query else path)
        given = await request.body() if body is None else body
        try:
            asked = self._client.build_request(
                request.method, url, headers=headers, content=given, extensions=self._to(node)
            )
            sending = self._client.send(asked, stream=True)
            is_question = request.method in ("GET", "HEAD")
            answer = await (self._while_up(node, sending) if is_question else sending)
        except httpx.TransportError as error:
            return away(node, error)
        passed = {k: v for k, v in answer.headers.items() if k not in _NOT_PASSED_ON}
        return StreamingResponse(
            _bytes(answer), answer.status_code, passed, background=BackgroundTask(answer.aclose)
        )

    async def get_all(
        self, request: Request, nodes: Sequence[NodeInfo], path: str
    ) -> list[tuple[NodeInfo, Any | None]]:
        """What each of them answers, for the request's sake; None from those who do not."""
        found = await asyncio.gather(*(self._get(request, node, path) for node in nodes))
        return list(zip(nodes, found, strict=True))

    async def _get(self, request: Request, node: NodeInfo, path: str) -> Any | None:
        try:
            asking = self._client.get(
                node.http + path, headers=_for(request), extensions=self._to(node)
            )
            answer = await self._while_up(node, asking)
            return answer.json() if answer.is_success else None
        except (httpx.TransportError, ValueError):
            return None

    async def post(
        self, request: Request, node: NodeInfo, path: str, body: dict[str, Any]
    ) -> httpx.Response:
        """Raises httpx.TransportError."""
        return await self._client.post(
            node.http + path, json=body, headers=_for(request), extensions=self._to(node)
        )

    async def _while_up(
        self, node: NodeInfo, asking: Coroutine[Any, Any, httpx.Response]
    ) -> httpx.Response:
        """A question is given up when its node is down: one that was paused or cut off takes
        connections, and says nothing. Raises httpx.TransportError."""
        task = asyncio.ensure_future(asking)
        try:
            while not (await asyncio.wait({task}, timeout=_LOOK_EVERY_S))[0]:
                if not self._is_up(node.name):
                    raise httpx.ReadTimeout("it is down")
            return task.result()
        finally:
            task.cancel()

    def _to(self, node: NodeInfo) -> dict[str, Any]:
        """The other side's certificate must name this node, before it gets to see a token."""
        if not self._is_tls:
            return {}
        if not node.http.startswith("https://"):
            raise httpx.UnsupportedProtocol(f"{node.name} has no certificate")
        return {"sni_hostname": host_name(node.name)}


def _for(request: Request) -> dict[str, str]:
    token = request.headers.get("authorization")
    return {HERE: "1"} if token is None else {HERE: "1", "authorization": token}


def away(node: NodeInfo, error: Exception) -> Response:
    reason = str(error) or type(error).__name__
    detail = (
        f"node {node.name} at {node.http} does not answer ({reason}): try again when it is back"
    )
    return problem(503, "a node is away", detail, headers={"Retry-After": "5"})


async def _bytes(answer: httpx.Response) -> AsyncIterator[bytes]:
    try:
        async for piece in answer.aiter_raw():
            yield piece
    except httpx.TransportError:
        return  # the reader sees the end, and asks again from where it is
