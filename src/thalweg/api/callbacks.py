"""A Python function that is called for every row of a query."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from thalweg.api.results import Result
from thalweg.engine.shared.results.emission import Emission
from thalweg.engine.sinks.callback import CallbackSink
from thalweg.engine.site import Site
from thalweg.engine.site.reading import Page

_numbers = itertools.count(1)


def call_for_rows(site: Site, query: str, call: Callable[[Result], None]) -> Callable[[], None]:
    """Attach the function to the query, from the next tick on; gives how to detach it."""

    def take(emission: Emission) -> None:
        page = Page(emission)
        for id_, change in zip(page.ids(), page.changes(), strict=True):
            row = dict(zip(emission.columns, change.row, strict=True))
            call(Result(id_, change.ts, change.op, row))

    name = f"callback-{next(_numbers)}"
    site.attach(query, name, CallbackSink(take))
    return lambda: site.detach(query, name)
