"""By which publications a mirror is fed, one after the other.

When a reader wants more rows than before, it opens a publication that sends more, and goes over to
it at an instant: below it rows come by the old way, from there on by the new one. Of the past, the
new one hands over what the old one has left out.
"""

from __future__ import annotations

import msgspec

from thalweg.plan.windows import BEGINNING
from thalweg.runtime.data.profiles import Where


class Route(msgspec.Struct, frozen=True):
    """From `since` on: the publication, and which rows it sends (None: all). `at` is its node, if
    that is not the one that the mirror was made for."""

    publication: str
    where: Where | None = None
    since: int = BEGINNING
    at: str | None = None


class Place(msgspec.Struct, frozen=True, array_like=True):
    """How far a mirror has come, and by which publication; kept with its rows."""

    publication: str
    instant: int


def after(routes: tuple[Route, ...], publication: str) -> Route | None:
    """What follows a publication."""
    names = [r.publication for r in routes]
    place = names.index(publication) + 1 if publication in names else len(names)
    return routes[place] if place < len(routes) else None


encode_routes = msgspec.json.Encoder().encode
decode_routes = msgspec.json.Decoder(tuple[Route, ...]).decode
encode_place = msgspec.msgpack.Encoder().encode
decode_place = msgspec.msgpack.Decoder(Place).decode
