"""Scripts that are handed in: cut into parts, each executed by the node that it concerns."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import httpx
from fastapi.concurrency import contextmanager_in_threadpool
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from thalweg.adapt.swap.policies.named import BOTH
from thalweg.api.bodies import Submission, pieces_of, submission_of
from thalweg.api.network.deployed import encode_placement
from thalweg.api.network.forwarding import Forwarding, away
from thalweg.api.network.listing import Listing
from thalweg.api.network.moves import spread_anew, spread_change
from thalweg.api.network.news import hear_of, names_in
from thalweg.api.network.options import (
    EAGER,
    MOVABLE,
    PLAN,
    ROUTING,
    SPREAD,
    STRATEGY,
    bound_ms_of,
    check_plan,
    strategy_of,
)
from thalweg.api.problems import BadRequest, diagnostic_json
from thalweg.cql import CqlError
from thalweg.cql.bind.dependencies import names_read
from thalweg.engine.site import SiteError
from thalweg.runtime.data.statements import quoted
from thalweg.runtime.network.directory import node_of
from thalweg.runtime.network.node import Node
from thalweg.runtime.network.placing.deploying import NotAdmitted, Placement
from thalweg.runtime.network.placing.strategies import Strategy
from thalweg.runtime.network.statements import Part

_NOTHING_DONE: dict[str, Any] = {
    **dict.fromkeys(("queries", "created", "dropped", "changes"), ()),
    **dict.fromkeys(("notes", "warnings", "notices", "errors"), ()),
    "written": 0,
}


class Submitting:
    def __init__(self, node: Node, forwarding: Forwarding, listing: Listing) -> None:
        self._node, self._forwarding, self._listing = node, forwarding, listing

    async def submit(self, request: Request) -> Response:
        given = await submission_of(request)
        return await self._run(request, given, strategy_of(request, self._node.strategy))

    async def submit_each(self, request: Request) -> Response:
        """All at once where they are for this node; else one after the other."""
        body = await request.body()
        pieces = await pieces_of(request)
        node = self._node
        strategy = strategy_of(request, self._node.strategy)
        bound_ms_of(request, strategy)  # also where no planner will look at it
        texts = [p.cql for p in pieces]
        is_local = strategy is Strategy.local and not {SPREAD, PLAN, MOVABLE} & set(request.headers)
        is_local = is_local and not any(map(spread_change, texts))
        is_local = is_local and node.computing.engine is None  # who may refuse some of them
        names = await run_in_threadpool(lambda: set[str]().union(*map(names_read, texts)))
        unknown = {n for n in names if node.find(n) is None}
        await hear_of(node, self._forwarding, request, unknown)
        if is_local and await run_in_threadpool(node.scripts.are_for_here, texts):
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
            except SiteError as error:  # of this text alone: those before it stand
                told = {"detail": str(error)}
                if isinstance(error, NotAdmitted):
                    told["refused"] = True
            if "detail" in told and "errors" not in told:
                told["errors"] = [{"text": told["detail"], "message": told["detail"]}]
            results.append({"name": piece.name, **_NOTHING_DONE, **told})
        failed = sum(len(r["errors"]) for r in results)
        done = sum(len(r["changes"]) + len(r["notes"]) + r["written"] for r in results)
        return JSONResponse({"done": done, "failed": failed, "results": results})

    async def _run(self, request: Request, given: Submission, strategy: Strategy) -> Response:
        known = self._node.directory.defined()
        try:
            return await self._run_now(request, given, strategy)
        except CqlError:
            # What it reads may be so new that it is not known here yet.
            names = names_in(given.cql)
            await hear_of(self._node, self._forwarding, request, names)
            if all(self._node.find(n) == known.get(n) for n in names):
                raise
        return await self._run_now(request, given, strategy)

    async def _run_now(self, request: Request, given: Submission, strategy: Strategy) -> Response:
        placements: dict[str, Placement] = {}
        if (asked := spread_change(given.cql)) is not None:
            notes = await spread_anew(self._node, self._forwarding, request, asked)
            return JSONResponse({**_NOTHING_DONE, "notes": notes})
        if SPREAD in request.headers:
            if STRATEGY in request.headers:
                raise BadRequest("a query is spread, or placed by a strategy: not both")
            measured = await self._listing.measured(request)
            parts, placements = await run_in_threadpool(
                self._node.scripts.spread_parts,
                given.cql,
                given.name,
                request.headers[SPREAD],
                measured,
            )
            return await self._execute(request, given, parts, placements)
        if PLAN in request.headers:
            check_plan(request)
            measured = await self._listing.measured(request)
            parts, placements = await run_in_threadpool(
                self._node.scripts.swapped_parts,
                given.cql,
                given.name,
                measured,
                request.headers.get(ROUTING, BOTH),
            )
            return await self._execute(request, given, parts, placements)
        if MOVABLE in request.headers:
            if STRATEGY in request.headers:
                raise BadRequest("a query is one fragment, or placed by a strategy: not both")
            parts, placements = await run_in_threadpool(
                self._node.scripts.movable_parts, given.cql, given.name
            )
            return await self._execute(request, given, parts, placements)
        bound_ms = bound_ms_of(request, strategy)
        if strategy.is_planned:
            chosen = (given.cql, given.name, strategy.value)
            if self._node.scripts.decides(strategy.value):
                together = contextmanager_in_threadpool(
                    self._node.scripts.decided_parts(*chosen, bound_ms)
                )
                async with together as (parts, placements):
                    return await self._execute(request, given, parts, placements)
            measured = await self._listing.measured(request)
            parts, placements = await run_in_threadpool(
                self._node.scripts.planned_parts, *chosen, measured, bound_ms
            )
            return await self._execute(request, given, parts, placements)
        arrived = None
        if strategy is Strategy.home:
            rows = await self._listing.listed(request, "/streams")
            arrived = {r["name"].lower(): r["arrived"] for r in rows if r["state"] != "unknown"}
        parts, placements = await run_in_threadpool(
            self._node.scripts.parts, given.cql, given.name, arrived
        )
        return await self._execute(request, given, parts, placements)

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
            if EAGER in request.headers:
                body["eager"] = True
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
