"""/health and /metrics: for whoever watches over the service."""

from __future__ import annotations

from dataclasses import asdict

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from thalweg.api.routes.queries import site_of

router = APIRouter(tags=["operations"])


@router.get("/health")
def health(request: Request) -> JSONResponse:
    """200 while ticks come through; 503 with the error while they fail."""
    found = site_of(request).health()
    return JSONResponse(asdict(found), 200 if found.ok else 503)


@router.get("/metrics")
def metrics(request: Request) -> Response:
    """For Prometheus."""
    return Response(generate_latest(site_of(request).metrics), media_type=CONTENT_TYPE_LATEST)


@router.get("/", include_in_schema=False)
def root() -> RedirectResponse:
    return RedirectResponse("/docs")
