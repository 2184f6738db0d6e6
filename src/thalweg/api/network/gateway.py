"""In front of a node's own service: one network, whichever node is asked.

What is named in the path is answered by the node that has it; lists are made of what all nodes
have; scripts are cut into parts for the nodes that they concern.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import httpx
import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from thalweg.api.bodies import Submission, pieces_of, submission_of
from thalweg.api.network.deployed import encode_placement
from thalweg.api.network.forwarding import AT, HERE, Forwarding, away
from thalweg.api.network.overview import overview
from thalweg.api.network.placed import placed_text, placed_tree
from thalweg.api.network.plan_report import plan_json
from thalweg.api.network.replanning import checked, replacement_json
from thalweg.api.problems import BadRequest, diagnostic_json
from thalweg.cql import CqlError
from thalweg.cql.bind.dependencies import names_read
from thalweg.engine.site import Unknown, WrongUse
from thalweg.runtime.data.statements import quoted
from thalweg.runtime.network.deploying import PLANNED, Placement
from thalweg.runtime.network.directory import FED, QUERY, Defined, NodeInfo, node_of
from thalweg.runtime.network.measuring import NodeMeasure
from thalweg.runtime.network.node import Node
from thalweg.runtime.network.placing import Strategy
from thalweg.runtime.network.statements import Part
from thalweg.runtime.trust import Credentials

_LISTS = {"/queries": (QUERY,), "/streams": FED, "/sinks": (), "/views": ()}  # kinds that are
# listed though their node is away
STRATEGY = "thalweg-strategy"  # a header: where new queries run
_SCRIPTS = ("/queries", "/streams")
_READING = ("/query", "/explain")  # a text that changes nothing
_NOTHING_DONE: dict[str, Any] = {
    **dict.fromkeys(("queries", "created", "dropped", "changes"), ()),
    **dict.fromkeys(("notes", "warnings", "notices", "errors"), ()),
    "written": 0,
}


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
        self._forwarding = Forwarding(credentials)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        answer = None if HERE in request.headers else await self._guarded(request)
        if answer is None:
            await self._app(scope, await _again(request, receive), send)
        else:
            await answer(scope, receive, send)

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
        if method == "GET" and path in _LISTS:
            return JSONResponse(await self._list(request, path))
        if method == "POST" and path in _SCRIPTS:
            return await self._submit(request)
        if method == "POST" and path == "/queries/bulk":
            return await self._submit_each(request)
        if method == "POST" and path in _READING:
            return await self._read(request)
        if method == "POST" and path == "/network/plan":
            return await self._plan(request)
        if method == "POST" and path == "/network/replan":
            return await self._replan(request)
        if method == "GET" and path == "/network/check":
            return JSONResponse(await checked(self._node, self._forwarding, request))
        entry = self._named(path)
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

    def _named(self, path: str) -> Defined | None:
        """What a path is about, where it stands in the network."""
        kind, _, rest = path.removeprefix("/").partition("/")
        name, _, _ = rest.partition("/")
        if kind not in ("queries", "streams") or not name:
            return None
        entry = self._node.find(name)
        wanted = (QUERY,) if kind == "queries" else FED
        return entry if entry is not None and entry.kind in wanted else None

    # --- where things run

    async def _placed(self, request: Request, entry: Defined) -> Response:
        at = node_of(self._node.directory, entry.node)
        found = await placed_tree(self._node, self._forwarding, request, at, entry.name)
        if found is None:
            return await self._forwarding.forward(request, at)  # it tells why
        if request.query_params.get("format") == "json":
            return JSONResponse(found)
        return PlainTextResponse(placed_text(found) + "\n")

    async def _plan(self, request: Request) -> Response:
        """What a strategy would do with a script's queries, in the network as it is now."""
        given, strategy = await submission_of(request), self._strategy(request)
        if not strategy.is_planned:
            raise BadRequest(f"{strategy} plans nothing: {', '.join(PLANNED)} do")
        measured = await self._measured(request)
        _, planned = await run_in_threadpool(
            self._node.planned, given.cql, given.name, strategy.value, measured
        )
        return JSONResponse(plan_json(strategy.value, planned, measured))

    async def _replan(self, request: Request) -> Response:
        """Place this node's queries anew, or say what would change."""
        given = await request.json() if await request.body() else {}
        strategy = self._strategy(request)
        if not strategy.is_planned:
            raise BadRequest(f"{strategy} plans nothing: {', '.join(PLANNED)} do")
        measured = await self._measured(request)
        found, stays = await run_in_threadpool(self._node.planned_again, strategy.value, measured)
        if not given.get("dry_run"):
            await run_in_threadpool(self._node.replacing.begin, found)
        return JSONResponse(replacement_json(found, stays))

    def _strategy(self, request: Request) -> Strategy:
        wanted = request.headers.get(STRATEGY, self._node.strategy)
        try:
            return Strategy(wanted)
        except ValueError:
            known = ", ".join(Strategy)
            raise BadRequest(
                f"there is no strategy {wanted} for a live network: there are {known}"
            ) from None

    # --- lists

    async def _list(self, request: Request, path: str) -> list[dict[str, Any]]:
        directory = self._node.directory
        found: list[dict[str, Any]] = []
        silent: list[NodeInfo] = []
        for node, rows in await self._forwarding.get_all(request, directory.nodes(), path):
            if rows is None:
                silent.append(node)
            else:
                found += [{**row, "node": node.name} for row in rows]
        away_names = {n.name for n in silent}
        found += [
            _unseen(entry)
            for entry in directory.defined().values()
            if entry.kind in _LISTS[path] and entry.node in away_names
        ]
        return sorted(found, key=lambda row: str(row["name"]).lower())

    async def _read(self, request: Request) -> Response | None:
        """By the node that has all that the text reads."""
        await request.body()
        text = (await submission_of(request)).cql
        is_bare = not text.lstrip().upper().startswith("CREATE")
        names = names_read(f"CREATE QUERY it AS {text}" if is_bare else text)
        places = {n: d.node for n in names if (d := self._node.find(n)) is not None}
        here = {n for n in places if self._node.site.catalog.find(n) is not None}
        if len(here) == len(places):
            return None
        if len(set(places.values())) > 1:
            told = ", ".join(f"{name} at {node}" for name, node in sorted(places.items()))
            raise WrongUse(f"no node has all of this ({told}): make it a standing query")
        (node,) = set(places.values())
        return await self._forwarding.forward(request, self._known(node))

    # --- scripts

    async def _submit(self, request: Request) -> Response:
        return await self._run(request, await submission_of(request), self._strategy(request))

    async def _submit_each(self, request: Request) -> Response:
        """All at once where they are for this node; else one after the other."""
        body = await request.body()
        pieces = await pieces_of(request)
        node = self._node
        strategy = self._strategy(request)
        texts = [p.cql for p in pieces]
        is_local = strategy is Strategy.local
        if is_local and await run_in_threadpool(node.are_for_here, texts):
            me = node_of(node.directory, node.name)
            return await self._forwarding.forward(request, me, body)
        results: list[dict[str, Any]] = []
        for piece in pieces:
            try:
                given = Submission(piece.cql, piece.name, piece.base)
                answer = await self._run(request, given, strategy)
                told = json.loads(bytes(answer.body))
            except CqlError as error:
                found = [diagnostic_json(d, piece.cql, piece.name) for d in error.diagnostics]
                told = {"errors": found}
            if "detail" in told and "errors" not in told:
                told["errors"] = [{"text": told["detail"], "message": told["detail"]}]
            results.append({"name": piece.name, **_NOTHING_DONE, **told})
        failed = sum(len(r["errors"]) for r in results)
        done = sum(len(r["changes"]) + len(r["notes"]) + r["written"] for r in results)
        return JSONResponse({"done": done, "failed": failed, "results": results})

    async def _run(self, request: Request, given: Submission, strategy: Strategy) -> Response:
        placements: dict[str, Placement] = {}
        if strategy.is_planned:
            measured = await self._measured(request)
            parts, placements = await run_in_threadpool(
                self._node.planned_parts, given.cql, given.name, strategy.value, measured
            )
            return await self._execute(request, given, parts, placements)
        arrived = None
        if strategy is Strategy.home:
            rows = await self._list(request, "/streams")
            arrived = {r["name"].lower(): r["arrived"] for r in rows if r["state"] != "unknown"}
        parts = await run_in_threadpool(self._node.parts, given.cql, given.name, arrived)
        return await self._execute(request, given, parts, placements)

    async def _measured(self, request: Request) -> list[NodeMeasure]:
        """The network as it is now; who does not answer is left out."""
        nodes = self._node.directory.nodes()
        found = await self._forwarding.get_all(request, nodes, "/network/measured")
        return [msgspec.convert(told, NodeMeasure) for _, told in found if told is not None]

    async def _execute(
        self,
        request: Request,
        given: Submission,
        parts: list[Part],
        placements: Mapping[str, Placement],
    ) -> Response:
        """Part by part. If one fails, placed queries that were made before it are taken back."""
        done: dict[str, Any] = {}
        for place, part in enumerate(parts):
            target = node_of(self._node.directory, part.node)
            body: dict[str, Any] = {"cql": part.text, "name": given.name}
            if given.folder is not None:
                body["folder"] = str(given.folder)
            if part.query is not None:
                chosen = placements[part.query]
                body["placement"] = encode_placement(chosen.fragment, chosen.task)
            try:
                answer = await self._forwarding.post(request, target, "/queries", body)
            except httpx.TransportError as error:
                await self._take_back(request, parts[:place])
                return away(target, error)
            if not answer.is_success:
                await self._take_back(request, parts[:place])
                return _refused(answer, [p.node for p in parts[:place] if p.query is None])
            _merge(done, answer.json(), target.name)
        return JSONResponse(done, 201)

    async def _take_back(self, request: Request, parts: list[Part]) -> None:
        for part in reversed(parts):
            if part.query is not None:
                body = {"cql": f"DROP QUERY {quoted(part.query)}", "name": "<cql>"}
                target = node_of(self._node.directory, part.node)
                with suppress(httpx.TransportError):
                    await self._forwarding.post(request, target, "/queries", body)


async def _again(request: Request, receive: Receive) -> Receive:
    """What a request says, also if it was read already."""
    if not hasattr(request, "_body"):
        return receive
    body = await request.body()
    pending = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return pending.pop() if pending else await receive()

    return replay


def _merge(done: dict[str, Any], more: dict[str, Any], node: str) -> None:
    for change in more.get("changes", ()):
        change["node"] = node
    for key, value in more.items():
        done[key] = done[key] + value if key in done else value


def _refused(answer: httpx.Response, nodes: list[str]) -> Response:
    """With what has been done before, if a script concerned several nodes."""
    headers = {k: v for k, v in answer.headers.items() if k == "retry-after"}
    if not nodes:
        return Response(
            answer.content, answer.status_code, headers, media_type="application/problem+json"
        )
    told = answer.json()
    told["detail"] += f" (statements before it have been executed at {', '.join(nodes)})"
    return Response(
        json.dumps(told), answer.status_code, headers, media_type="application/problem+json"
    )


def _unseen(entry: Defined) -> dict[str, Any]:
    """Of a node that does not answer, what is known all the same."""
    error = f"node {entry.node} does not answer"
    common = {"name": entry.name, "state": "unknown", "error": error, "node": entry.node}
    if entry.kind == QUERY:
        nothing = dict.fromkeys(("group", "rows", "frontier", "complete_from"))
        return {
            **nothing,
            **common,
            "kind": "",
            "cost_s": 0.0,
            "streams": [],
            "sinks": [],
            "columns": [],
            "text": entry.text,
        }
    counts = dict.fromkeys(("arrived", "backlog", "late", "rejected"), 0)
    return {
        **counts,
        **common,
        "kind": entry.kind,
        "columns": [],
        "watermark": None,
        "source": None,
        "timestamp": "",
    }
