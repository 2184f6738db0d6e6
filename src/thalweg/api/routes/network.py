"""/network/…: what this node knows of others, reads of them, and does for them."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Body, Query, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool

from thalweg.api.bodies import decoded
from thalweg.api.network.moves import move_json
from thalweg.api.network.peers import role
from thalweg.api.network.placed import placed, placed_text
from thalweg.api.network.replanning import replacement_json
from thalweg.api.routes.queries import site_of
from thalweg.engine.site import Unknown, WrongUse
from thalweg.engine.site.authors import author_now
from thalweg.engine.site.publications import is_mirror, is_publication, labels_of, reader_of
from thalweg.engine.site.status import instant_text
from thalweg.runtime.data.fragments import digest_of, is_fragment
from thalweg.runtime.network.directory import FED, Defined
from thalweg.runtime.network.labels.labels import base_of
from thalweg.runtime.network.mirrors.mirrored import home_of
from thalweg.runtime.network.moves.draining import Progress
from thalweg.runtime.network.node import Node
from thalweg.runtime.network.placing.replacing import Replacement
from thalweg.runtime.network.placing.tasks import room_version
from thalweg.runtime.peers.definitions import is_join
from thalweg.runtime.swap.definitions import is_joined
from thalweg.runtime.swap.telling import part_json

router = APIRouter(tags=["network"])
TextOrJson = Literal["text", "json"]
_LATELY_S = 10.0  # for which a map tells fidelity


@router.get("/network/links")
def links(request: Request) -> list[dict[str, Any]]:
    """Streams of other nodes that are read here: where they come from, how far they have come, and
    why not further."""
    node = _node(request)
    site = node.site
    found = []
    faithful = node.fidelity.periods(_LATELY_S, 1)
    busy, _ = node.meter.busy()
    for stream in site.catalog.streams():
        if not is_mirror(stream) or is_join(stream) or is_joined(stream):
            continue
        if node.mirrors.has_ended(stream):
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
                "home": home_of(stream),
                "arrived": site.engine.store.inputs.arrived().get(stream.name, 0),
                "watermark": instant_text(
                    mark, stream.resolution_us, stream.timestamp_type.is_temporal
                ),
                "error": site.lost.get(stream.name) or (feed.error if feed is not None else None),
                "fidelity": faithful[stream.name][0][0].fidelity
                if stream.name in faithful
                else None,
                "busy": busy,
            }
        )
    return found


@router.get("/network/nodes")
def nodes(request: Request) -> list[dict[str, Any]]:
    """The nodes that this one has heard of; nobody else is asked."""
    directory = _node(request).directory
    return [
        {"name": n.name, "site": n.site, "http": n.http, "is_up": directory.is_up(n.name)}
        for n in directory.nodes()
    ]


@router.get("/network/role")
def peers_role(request: Request) -> dict[str, Any] | None:
    """Among peers: which share of all values this node has, what it stores, what it is a source of;
    nothing where streams have homes."""
    return role(_node(request))


@router.get("/network/measured")
def measured(request: Request) -> Response:
    """What planners want to know of this node: rates, delays, load, what it was given to do."""
    told = msgspec.json.encode(_node(request).planning.measured())
    return Response(told, media_type="application/json")


@router.get("/network/defined")
def defined(request: Request, name: Annotated[list[str], Query()]) -> list[dict[str, str]]:
    """What this node has of these names, for those who have not heard of it yet."""
    found = _node(request).own.of(name)
    return [{"name": n, "kind": kind, "text": text} for n, kind, text in found]


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


@router.get("/network/joins")
def join_here(request: Request, query: Annotated[str, Query(alias="id")]) -> dict[str, Any] | None:
    """This node's part in a join across nodes: rows that have gone each way; nothing, if none."""
    joins = _node(request).joins
    return None if joins is None else part_json(joins, query)


@router.get("/network/fragments")
def fragments(request: Request) -> list[dict[str, Any]]:
    """What this node computes for others."""
    node = _node(request)
    names = [q.name for q in node.site.catalog.queries() if is_fragment(q.name)]
    found = []
    for name in names:
        with suppress(Unknown):  # it may have gone meanwhile
            found.append(placed(node, name))
    return [
        {"publication": f["query"], "reader": reader_of(f["query"])}
        | {key: f[key] for key in ("frontier", "computes", "kept", "moved")}
        for f in found
    ]


@router.get("/network/refusals")
def refusals(request: Request) -> list[dict[str, str]]:
    """Scripts that were handed in here, and that a strategy did not admit; the last hundred."""
    return [msgspec.to_builtins(r) for r in _node(request).tasks.refusals()]


@router.get("/network/room")
def room(request: Request) -> dict[str, str]:
    """A version that differs once there may be room for a query that was refused."""
    return {"version": room_version(_node(request).directory)}


@router.post("/network/leave", status_code=204)
def leave(request: Request) -> Response:
    """Take this node out of the network, and stop it. What it computes for others goes to those who
    read it, with its state where it can't be rebuilt. Refused while it has streams or queries."""
    _node(request).leave()
    stop = BackgroundTask(os.kill, os.getpid(), signal.SIGTERM)
    return Response(status_code=204, background=stop)


@router.post("/network/drain", status_code=202)
def drain(request: Request, leaving: bool = False) -> dict[str, Any]:
    """Let what this node computes for others be computed by the nodes that read it: by replay, or
    with its state where it can't be rebuilt. The node stays. Answered at once; `leaving`: refused
    if the node could not leave afterwards."""
    node = _node(request)
    if leaving:
        node.check_leaves()
    why = "it leaves" if leaving else "it is drained"
    return _drain_json(node.draining.begin(why, _user()))


@router.get("/network/drain")
def drained(request: Request) -> dict[str, Any]:
    """How far the last drain of this node has come, and who still reads what here."""
    return _drain_json(_node(request).draining.progress())


def _drain_json(found: Progress) -> dict[str, Any]:
    left = [{"fragment": digest_of(name), "reader": reader_of(name)} for name in found.left]
    return {"state": found.state, "total": found.total, "left": left, "error": found.error}


class MoveBody(msgspec.Struct):
    publication: str
    to: str
    by: str = "precopy"
    why: str = ""


@router.post("/network/moves", status_code=202)
async def move(request: Request) -> dict[str, Any]:
    """Let a fragment of this node go on at another one, with its state, from an instant on that
    is chosen when it stands still."""
    given = await decoded(request, MoveBody)
    node, user = _node(request), _user()
    record = await run_in_threadpool(
        node.move, given.publication, given.to, given.by, asked_by=user, why=given.why
    )
    return move_json(record)


@router.get("/network/load")
def load(request: Request) -> dict[str, Any]:
    """What this node uses since it was last asked, in all and by fragment: cores of ticks, bits
    from and to other nodes, memory, state."""
    found: dict[str, Any] = msgspec.to_builtins(_node(request).balancing.weigh())
    for part in found["fragments"]:
        part["fragment"] = digest_of(part["publication"])
    return found


@router.get("/network/partners")
def partners(request: Request) -> list[dict[str, Any]]:
    """Whom nodes balance with, and what they know of each other's loads."""
    found = _node(request).partnering
    return [] if found is None else [found.state()]


@router.get("/network/moves")
def moves(request: Request) -> list[dict[str, Any]]:
    """What was moved from this node, or is on its way: the last hundred."""
    moving = _node(request).moving
    return [] if moving is None else [move_json(r) for r in moving.journal.all()]


def _user() -> str:
    author = author_now()
    return "" if author is None else author.name


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


@router.get("/network/trees")
def trees(request: Request, why: str | None = None) -> list[dict[str, Any]]:
    """The trees of this node's streams: who has them from whom; and why a node hangs where it
    does."""
    node = _node(request)
    if node.trees is None:
        return []
    book, found = node.trees.book, []
    own = {d.name for d in node.directory.defined().values() if _is_fed(d, node)}
    own |= {s.name for s in node.site.catalog.streams() if labels_of(s) is not None}
    for stream in sorted(own):
        members = book.tree(stream)
        told: dict[str, Any] = {"stream": stream, "home": node.name, "members": members}
        told["choice"] = node.trees.choice.name
        if why is not None:
            if why not in [node.name, *(m["node"] for m in members)]:
                continue
            told["why"] = book.why(stream, why)
        if members:
            found.append(told)
    return found


@router.get("/network/coordinators")
def coordinators(request: Request) -> list[dict[str, Any]]:
    """This node's part where nodes decide together where queries run: its place in the tree of
    coordinators, what it was given to run, and the zones that it places."""
    deciding = _node(request).deciding
    return [] if deciding is None else [deciding.told()]


@router.get("/network/fidelity")
def fidelity(
    request: Request,
    period_s: Annotated[float, Query(gt=0, le=3600)] = 10.0,
    periods: Annotated[int, Query(ge=1, le=100)] = 3,
) -> list[dict[str, Any]]:
    """How faithful this node is to the streams that it reads: of each of the last periods, the
    share of time in which it had all rows that their homes had for it; and this node's load."""
    node = _node(request)
    busy, _ = node.meter.busy()
    found = []
    for stream, (told, error_s) in sorted(node.fidelity.periods(period_s, periods).items()):
        defined = node.site.stream(stream)
        for place, period in enumerate(reversed(told)):
            found.append(
                {
                    "stream": base_of(stream) or stream,
                    "reader": node.name,
                    "home": home_of(defined),
                    "from": node.mirrors.home(defined),
                    "ago_s": period_s * (place + 1),
                    "period_s": period_s,
                    "fidelity": period.fidelity,
                    "delay_ms": None if period.delay_s is None else 1000 * period.delay_s,
                    "batches": period.batches,
                    "clock_error_ms": 1000 * error_s,
                    "hop_ms": 1000 * node.passing.hop_s(),
                    "busy": busy,
                }
            )
    return found


def _is_fed(defined: Defined, node: Node) -> bool:
    return defined.node == node.name and defined.kind in FED


@router.get("/network/replan")
def replacing(request: Request) -> dict[str, Any]:
    """How far the fragments are that were last to go elsewhere."""
    node = _node(request)
    return replacement_json(node.site, node.replacing.present() or Replacement("", (), ()))


@router.get("/network/replans")
def replans(request: Request) -> list[dict[str, Any]]:
    """When this node has looked whether plans still fit and planned anew: why, and what came of it;
    the last first."""
    return [msgspec.to_builtins(look) for look in _node(request).watcher.looks()]


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
