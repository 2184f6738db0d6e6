"""/groups: who is answered together, by what, and what that saves."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response

from thalweg.api.routes.queries import explanation, site_of

router = APIRouter(tags=["groups"])

JsonOrText = Annotated[Literal["json", "text"], Query(alias="format")]


@router.get("/groups")
def list_groups(request: Request, wanted: JsonOrText = "json") -> Response:
    """All groups: representative, members, profiles, indexes, and what they save."""
    return explanation(site_of(request).explain_groups(), wanted)


@router.get("/groups/{name:path}")
def show_group(request: Request, name: str, wanted: JsonOrText = "json") -> Response:
    """One group, by its name (`group/1`) or its number."""
    return explanation(site_of(request).explain_group(name), wanted)
