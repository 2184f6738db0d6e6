"""In front of a node's own service: one network, whichever node is asked.

What is named in the path is answered by the node that has it; lists are made of what all nodes
have; scripts are cut into parts for the nodes that they concern.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from thalweg.api.bodies import submission_of
from thalweg.api.network.forwarding import AT, HERE, Forwarding
from thalweg.api.network.listing import LISTS, OF_ALL, Listing
from thalweg.api.network.moves import begin_moves, listed_moves
from thalweg.api.network.news import hear_of
from thalweg.api.network.overview import overview
from thalweg.api.network.placed import placed_text, placed_tree
from thalweg.api.network.planning import Planning
from thalweg.api.network.replanning import checked
from thalweg.api.network.submitting import Submitting
from thalweg.cql.bind.dependencies import names_read
from thalweg.engine.site import Unknown, WrongUse
from thalweg.runtime.network.directory import FED, QUERY, Defined, NodeInfo, node_of
from thalweg.runtime.network.node import Node
from thalweg.runtime.peers.node import PeerNode
from thalweg.runtime.trust import Credentials

_NAMED = ("queries", "streams")  # paths that go on with a name
_SCRIPTS = ("/queries", "/streams")
_READING = ("/query", "/explain")  # a text that changes nothing

Handlers = Mapping[Any, Callable[[Request, Exception], Any]]


class Gateway:
    """`handlers` make answers of errors."""

    def __init__(
        self,
        app: ASGIApp,
        node: Node,
        handlers: Handlers,
        credentials: Credentials | None = None,
    ) -> None:
        self._app, self._node, self._handlers = app, node, handlers
        self._forwarding = Forwarding(node.directory.is_up, credentials)
        self._listing = Listing(node, self._forwarding)
        self._planning = Planning(node, self._listing)
        self._submitting = Submitting(node, self._forwarding, self._listing)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        answer = None if HERE in request.headers else await self._guarded(request)
        if answer is None:
            await self._app(self._as_here(scope), await _again(request, receive), send)
        else:
            await answer(scope, receive, send)

    def _as_here(self, scope: Scope) -> Scope:
        """With this node's own name for what the network calls `name@node`."""
        kind, _, rest = scope["path"].removeprefix("/").partition("/")
        name, slash, more = rest.partition("/")
        own = self._node.own.name_here(name) if kind in _NAMED and name else None
        if own is None:
            return scope
        path = f"/{kind}/{own}{slash}{more}"
        return {**scope, "path": path, "raw_path": quote(path).encode()}

    async def _guarded(self, request: Request) -> Response | None:
        try:
            return await self._answer(request)
        except Exception as error:
            for kind in type(error).__mro__:
                if kind in self._handlers and kind is not Exception:
                    made: Response = self._handlers[kind](request, error)
                    return made
            raise

    async def _answer(self, request: Request) -> Response | None:
        """None: the node itself answers."""
        wanted = request.headers.get(AT)
        if wanted is not None and wanted != self._node.name:
            return await self._forwarding.forward(request, self._known(wanted), through=True)
        path, method = request.url.path.rstrip("/") or "/", request.method
        if method == "GET" and path == "/network":
            return JSONResponse(await overview(self._node, self._forwarding, request))
        if method == "GET" and path in LISTS:
            return JSONResponse(await self._listing.listed(request, path))
        if method == "POST" and path in _SCRIPTS:
            return await self._submitting.submit(request)
        if method == "POST" and path == "/queries/bulk":
            return await self._submitting.submit_each(request)
        if self._node.is_answered_here(path):
            return None
        if method == "POST" and path in _READING:
            return await self._read(request)
        if method == "POST" and path == "/network/plan":
            return await self._planning.plan(request)
        if method == "POST" and path == "/network/replan":
            return await self._planning.replan(request)
        if path == "/network/moves" and method in ("GET", "POST"):
            asked = listed_moves if method == "GET" else begin_moves
            return JSONResponse(await asked(self._node, self._forwarding, request))
        if method == "GET" and path == "/network/loads":
            return JSONResponse(await self._listing.loads(request))
        if method == "GET" and path in OF_ALL:
            return JSONResponse(await self._listing.of_all(request, path))
        if method == "GET" and path == "/network/check":
            return JSONResponse(await checked(self._node, self._forwarding, request))
        entry = await self._named(request, path)
        if entry is not None and method == "GET" and path.endswith("/placed"):
            return await self._placed(request, entry)
        if entry is None or entry.node == self._node.name:
            return None
        return await self._forwarding.forward(request, node_of(self._node.directory, entry.node))

    def _known(self, name: str) -> NodeInfo:
        known = self._node.directory.nodes()
        found = next((n for n in known if n.name == name), None)
        if found is None:
            raise Unknown("node", name, [n.name for n in known])
        return found

    async def _named(self, request: Request, path: str) -> Defined | None:
        """What a path is about, where it stands in the network."""
        kind, _, rest = path.removeprefix("/").partition("/")
        name, _, _ = rest.partition("/")
        if kind not in _NAMED or not name:
            return None
        entry = self._node.find(name)
        if entry is None and self._node.site.catalog.find(name) is None:
            await hear_of(self._node, self._forwarding, request, [name])
            entry = self._node.find(name)
        wanted = (QUERY,) if kind == "queries" else FED
        return entry if entry is not None and entry.kind in wanted else None

    # --- where things run

    async def _placed(self, request: Request, entry: Defined) -> Response:
        at = node_of(self._node.directory, entry.node)
        if isinstance(self._node, PeerNode):
            # Who has what is all that there is to explain of what peers compute together.
            path = request.scope["raw_path"].removesuffix(b"/placed") + b"/explain"
            scope = {**request.scope, "raw_path": path}
            return await self._forwarding.forward(Request(scope, request.receive), at)
        found = await placed_tree(self._node, self._forwarding, request, at, entry.name_there)
        if found is None:
            return await self._forwarding.forward(request, at)  # it tells why
        if request.query_params.get("format") == "json":
            return JSONResponse(found)
        return PlainTextResponse(placed_text(found) + "\n")

    async def _read(self, request: Request) -> Response | None:
        """By the node that has all that the text reads."""
        await request.body()
        text = (await submission_of(request)).cql
        is_bare = not text.lstrip().upper().startswith("CREATE")
        names = names_read(f"CREATE QUERY it AS {text}" if is_bare else text)
        places = {n: d.node for n in names if (d := self._node.find(n)) is not None}
        # Of others' streams, this node has what its own queries read.
        if all(node == self._node.name for node in places.values()):
            return None
        if len(set(places.values())) > 1:
            told = ", ".join(f"{name} at {node}" for name, node in sorted(places.items()))
            raise WrongUse(f"no node has all of this ({told}): make it a standing query")
        (node,) = set(places.values())
        return await self._forwarding.forward(request, self._known(node))


async def _again(request: Request, receive: Receive) -> Receive:
    """What a request says, also if it was read already."""
    if not hasattr(request, "_body"):
        return receive
    body = await request.body()
    pending = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return pending.pop() if pending else await receive()

    return replay
