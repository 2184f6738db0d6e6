"""By which publications a mirror is fed, one after the other.

When a reader wants more rows or columns than before, it opens a publication that sends more, and
goes over to it at an instant: below it rows come by the old way, from there on by the new one. Of
the past, the new one hands over what the old one has left out.
"""

from __future__ import annotations

import msgspec

from thalweg.plan.windows import BEGINNING
from thalweg.runtime.data.profiles import Columns, Profile, Where


class Handed(msgspec.Struct, frozen=True):
    """What a publication hands over of the past: so many instants were asked for (None: all), and
    from `complete_from` on it has all of it."""

    asked: int | None
    complete_from: int

    def is_enough(self, reach: int | None, before: int) -> bool:
        """Whether a query that begins at an instant finds what its windows reach back to. Who wants
        all that there is begins with what is here."""
        if reach is None or self.asked is None or reach <= self.asked:
            return True
        return self.complete_from <= max(BEGINNING, before - reach)


class Route(msgspec.Struct, frozen=True):
    """From `since` on: the publication, and which rows and columns it sends (None: all). `at` is
    its node, if that is not the one that the mirror was made for. One that `continues` another says
    nothing about what was before. `whole_from`, if it is not `since`: the instant from which on the
    mirror has all of these rows. `past` is what has been handed over, or, if it `hands_over` more
    than has come by the way before, what will be."""

    publication: str
    where: Where | None = None
    since: int = BEGINNING
    at: str | None = None
    continues: bool = False
    whole_from: int | None = None
    columns: Columns | None = None
    past: Handed | None = None
    hands_over: bool = False

    @property
    def profile(self) -> Profile:
        return Profile(self.where, self.columns)

    @property
    def has_rows_from(self) -> int:
        return self.since if self.whole_from is None else self.whole_from


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
