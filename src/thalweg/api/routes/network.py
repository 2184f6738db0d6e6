"""/network/links: what this node reads of others, and what others read of it."""

from __future__ import annotations

import os
import signal
from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Body, Query, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from starlette.background import BackgroundTask

from thalweg.api.network.placed import placed, placed_text
from thalweg.api.network.replanning import replacement_json
from thalweg.api.routes.queries import site_of
from thalweg.engine.site import Unknown, WrongUse
from thalweg.engine.site.publications import is_mirror, is_publication, reader_of
from thalweg.engine.site.status import instant_text
from thalweg.runtime.data.fragments import digest_of, is_fragment
from thalweg.runtime.network.node import Node
from thalweg.runtime.network.replacing import Replacement

router = APIRouter(tags=["network"])
TextOrJson = Literal["text", "json"]


@router.get("/network/links")
def links(request: Request) -> list[dict[str, Any]]:
    """Streams of other nodes that are read here: where they come from, how far they have come, and
    why not further."""
    node = _node(request)
    site = node.site
    found = []
    for stream in site.catalog.streams():
        if not is_mirror(stream):
            continue
        feed = site.feeds.find(stream.name)
        mark = site.engine.watermark(stream.name)
        publication = node.mirrors.routes(stream)[-1].publication
        found.append(
            {
                "stream": dict(stream.options).get("stream", stream.name),
                "fragment": digest_of(publication),
                "publication": publication,
                "from": node.mirrors.home(stream),
                "arrived": site.engine.store.inputs.arrived().get(stream.name, 0),
                "watermark": instant_text(
                    mark, stream.resolution_us, stream.timestamp_type.is_temporal
                ),
                "error": site.lost.get(stream.name) or (feed.error if feed is not None else None),
            }
        )
    return found


@router.get("/network/measured")
def measured(request: Request) -> Response:
    """What planners want to know of this node: rates, delays, load, what it was given to do."""
    told = msgspec.json.encode(_node(request).measured())
    return Response(told, media_type="application/json")


@router.get("/queries/{name}/placed")
def where(
    request: Request, name: str, wanted: Annotated[TextOrJson, Query(alias="format")] = "text"
) -> Response:
    """Where a query runs, and what comes to it from where, as this node sees it."""
    found = placed(_node(request), name)
    return PlainTextResponse(placed_text(found) + "\n") if wanted == "text" else JSONResponse(found)


@router.get("/network/placed")
def placed_here(request: Request, name: str) -> dict[str, Any]:
    """The same of a query or fragment, for other nodes."""
    return placed(_node(request), name)


@router.get("/network/fragments")
def fragments(request: Request) -> list[dict[str, Any]]:
    """What this node computes for others."""
    node = _node(request)
    names = [q.name for q in node.site.catalog.queries() if is_fragment(q.name)]
    found = [placed(node, name) for name in names]
    return [
        {"publication": f["query"], "reader": reader_of(f["query"])}
        | {key: f[key] for key in ("frontier", "computes", "kept")}
        for f in found
    ]


@router.get("/network/refusals")
def refusals(request: Request) -> list[dict[str, str]]:
    """Scripts that were handed in here, and that a strategy did not admit; the last hundred."""
    return [msgspec.to_builtins(r) for r in _node(request).tasks.refusals()]


@router.post("/network/leave", status_code=204)
def leave(request: Request) -> Response:
    """Take this node out of the network, and stop it. What it computes for others goes to those who
    read it. Refused while it has streams or queries, or computes what can't be rebuilt."""
    _node(request).leave()
    stop = BackgroundTask(os.kill, os.getpid(), signal.SIGTERM)
    return Response(status_code=204, background=stop)


@router.post("/network/forget", status_code=204)
def forget(request: Request, node: Annotated[str, Body(embed=True)]) -> Response:
    """A node is gone for good: what it had is dropped, and its names are free. Refused while it
    runs."""
    known = [n.name for n in _node(request).directory.nodes()]
    if node not in known:
        raise Unknown("node", node, known)
    _node(request).directory.forget(node)
    return Response(status_code=204)


@router.get("/network/successions")
def successions(request: Request) -> list[dict[str, Any]]:
    """Fragments that are computed here since their nodes are gone, and those that are lost."""
    succession = _node(request).succession
    taken = [] if succession is None else succession.taken()
    return [msgspec.to_builtins(t) for t in taken]


@router.get("/network/replan")
def replacing(request: Request) -> dict[str, Any]:
    """How far the fragments are that were last to go elsewhere."""
    found = _node(request).replacing.present()
    return replacement_json(found if found is not None else Replacement("", (), ()))


@router.get("/network/publications")
def publications(request: Request) -> list[str]:
    """What is kept here for other nodes."""
    node: Node | None = request.app.state.node
    if node is not None:
        return node.data.publications.names()
    return sorted(q.name for q in site_of(request).catalog.queries() if is_publication(q.name))


def _node(request: Request) -> Node:
    node: Node | None = request.app.state.node
    if node is None:
        raise WrongUse("this service is not a node of a network: everything runs here")
    return node
