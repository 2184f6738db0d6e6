"""The REST service over one site."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from anyio import CapacityLimiter
from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse

from thalweg.api import problems
from thalweg.api.access import Access, middleware
from thalweg.api.network.gateway import Gateway
from thalweg.api.origins import OwnOrigin
from thalweg.api.reference_page import reference_page
from thalweg.api.routes import groups, network, operations, queries, sinks, streams
from thalweg.api.tick_signal import TickSignal
from thalweg.engine.site import Site
from thalweg.runtime.network.node import Node
from thalweg.runtime.trust import Credentials

_ABOUT = """
Standing CQL queries over streams. Define streams, submit queries, push tuples, and read each
query's results as server-sent events. Errors are problem JSON (RFC 9457).
"""


def make_app(
    site: Site,
    node: Node | None = None,
    access: Access | None = None,
    credentials: Credentials | None = None,
) -> FastAPI:
    """The service; whoever runs it opens and closes the site. With a node, it answers for all the
    network, and speaks with the others by its credentials; with access, to its users only."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.tick_signal = TickSignal(site)
        app.state.pushers = CapacityLimiter(streams.AT_ONCE)
        yield
        app.state.tick_signal.close()

    app = FastAPI(
        title="Thalweg",
        version=version("thalweg"),
        description=_ABOUT,
        lifespan=lifespan,
        docs_url=None,  # FastAPI's own pages load scripts from elsewhere
        redoc_url=None,
    )
    if node is not None:
        app.add_middleware(
            Gateway, node=node, handlers=app.exception_handlers, credentials=credentials
        )
    if access is not None:
        app.add_middleware(middleware.TokenNeeded, access=access, site=site, node=node)
    app.add_middleware(OwnOrigin)
    app.state.site = site
    app.state.node = node
    for routes in (queries, groups, sinks, streams, network, operations):
        app.include_router(routes.router)
    problems.install(app)
    middleware.install(app)

    @app.get("/docs", include_in_schema=False)
    def docs(request: Request) -> HTMLResponse:
        return HTMLResponse(reference_page(app.openapi(), str(request.base_url)))

    return app
