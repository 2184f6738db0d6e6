"""/health, /metrics and /backup: for whoever looks after the service."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import asdict
from pathlib import Path

from fastapi import APIRouter, Request, Response
from fastapi.responses import FileResponse, JSONResponse, RedirectResponse
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from starlette.background import BackgroundTask

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


@router.get("/backup", response_class=FileResponse)
def backup(request: Request) -> FileResponse:
    """Catalog, state and results as one file, consistent, while the service goes on; it is brought
    back with `thalweg restore`."""
    site = site_of(request)
    folder = Path(tempfile.mkdtemp(prefix=".backup-", dir=site.engine.folder))
    try:
        site.back_up(folder / "thalweg.tar.gz")
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return FileResponse(
        folder / "thalweg.tar.gz",
        filename="thalweg.tar.gz",
        media_type="application/gzip",
        background=BackgroundTask(shutil.rmtree, folder, ignore_errors=True),
    )
