"""Plans that are asked for by themselves: of queries to come, and of those that stand."""

from __future__ import annotations

import msgspec
from fastapi.concurrency import contextmanager_in_threadpool
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from thalweg.api.bodies import decoded, submission_of
from thalweg.api.network.listing import Listing
from thalweg.api.network.options import bound_ms_of, planned_strategy_of
from thalweg.api.network.plan_report import plan_json
from thalweg.api.network.replanning import replacement_json
from thalweg.runtime.network.node import Node
from thalweg.runtime.network.placing.deploying import PLANNED
from thalweg.runtime.network.placing.strategies import Strategy


class _Replan(msgspec.Struct):
    dry_run: bool = False


class Planning:
    def __init__(self, node: Node, listing: Listing) -> None:
        self._node, self._listing = node, listing

    async def plan(self, request: Request) -> Response:
        """What a strategy would do with a script's queries, in the network as it is now."""
        given = await submission_of(request)
        own = self._node.strategy
        strategy = planned_strategy_of(request, own if own in PLANNED else Strategy.sqpr)
        chosen = (given.cql, given.name, strategy.value)
        bound_ms = bound_ms_of(request, strategy)
        if self._node.scripts.decides(strategy.value):
            together = contextmanager_in_threadpool(self._node.scripts.decided(*chosen, bound_ms))
            async with together as (_, planned, measured):
                return JSONResponse(plan_json(strategy.value, planned, measured))
        measured = await self._listing.measured(request)
        _, planned = await run_in_threadpool(
            self._node.scripts.planned, *chosen, measured, bound_ms
        )
        return JSONResponse(plan_json(strategy.value, planned, measured))

    async def replan(self, request: Request) -> Response:
        """Place this node's queries anew, or say what would change."""
        given = await decoded(request, _Replan) if await request.body() else _Replan()
        strategy = planned_strategy_of(request, self._node.strategy)
        measured = await self._listing.measured(request)
        found, stays, _ = await run_in_threadpool(
            self._node.planning.planned_again, strategy.value, measured
        )
        if not given.dry_run:
            await run_in_threadpool(self._node.replacing.begin, found)
        return JSONResponse(replacement_json(self._node.site, found, stays))
