"""Results as they come: what there is, then what follows, until nothing can."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from thalweg.engine.site.positions import Position
from thalweg.engine.site.reading import Page, Reading
from thalweg.plan.catalog import QueryDef
from thalweg.plan.shapes import shape_of

_LOOK_S = 1.0  # however quiet it is, look so often whether the query still stands


def columns_of(query: QueryDef) -> tuple[str, ...]:
    return shape_of(query).columns


def follow_pages(
    reading: Reading,
    query: QueryDef,
    after: Position,
    ending: Callable[[], str | None],
    timeout_s: float | None,
) -> Iterator[Page]:
    """Pages until there is a reason for the end, or for `timeout_s` there was no tick."""
    while True:
        # Both are taken before looking, so that no row slips in behind the look.
        seen, end, found = reading.changes, ending(), False
        for page in reading.pages(query.name, columns_of(query), after):
            yield page
            after, found = page.last, True
        if end is not None:
            return
        if not found:
            came = reading.wait(seen, _LOOK_S if timeout_s is None else timeout_s)
            if not came and timeout_s is not None:
                return
