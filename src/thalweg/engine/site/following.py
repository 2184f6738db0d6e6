"""Results as they come: what there is, then what follows, until nothing can."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from thalweg.engine.site.changes import Changes
from thalweg.engine.site.positions import Position
from thalweg.engine.site.reading import Page, Reader

_LOOK_S = 1.0  # however quiet it is, look so often whether the query still stands


def follow_pages(
    reader: Reader,
    changes: Changes,
    after: Position,
    ending: Callable[[], str | None],
    timeout_s: float | None,
) -> Iterator[Page]:
    """Pages until there is a reason for the end, or for `timeout_s` there was no tick."""
    while True:
        # Both are taken before looking, so that no row slips in behind the look.
        seen, end, found = changes.count, ending(), False
        for page in reader.pages(after):
            yield page
            after, found = page.last, True
        if end is not None:
            return
        if not found:
            came = changes.wait(seen, _LOOK_S if timeout_s is None else timeout_s)
            if not came and timeout_s is not None:
                return
