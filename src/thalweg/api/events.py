"""Results as server-sent events: each row has its id, and a client that keeps the last id it saw
gets every row exactly once, whatever breaks in between.

An event without data only moves the client's id on, past ticks in which the query said nothing.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator

from starlette.concurrency import run_in_threadpool

from thalweg.api.tick_signal import TickSignal, rung
from thalweg.engine.sinks.encode import json_lines
from thalweg.engine.site import Position, Site
from thalweg.engine.site.reading import Page
from thalweg.plan.catalog import QueryDef
from thalweg.plan.shapes import shape_of

KEEP_ALIVE_S = 10.0
ROWS_PER_WRITE = 1_000


async def events(
    site: Site, tick_signal: TickSignal, query: QueryDef, after: Position
) -> AsyncIterator[str]:
    """All rows behind a position, then rows as they come, until the query ends."""
    columns = shape_of(query).columns
    yield "retry: 1000\n\n"
    while True:
        tick = tick_signal.next
        end = site.ending(query)  # before looking, so that no row is left behind it
        last = site.reading.last_tick()
        pages = site.reading.pages(query.name, columns, after, last)
        while (page := await run_in_threadpool(next, pages, None)) is not None:
            for part in await run_in_threadpool(lambda p: list(_parts(p)), page):
                yield part
        after = max(after, Position(last))
        yield f"id: {after}\n\n"
        if end is not None:
            yield f"event: end\ndata: {json.dumps({'reason': end})}\n\n"
            return
        if tick_signal.closing:
            return
        if not await rung(tick, KEEP_ALIVE_S):
            yield ": still here\n\n"


def _parts(page: Page) -> Iterator[str]:
    written = [
        f"id: {id_}\ndata: {line}\n"
        for id_, line in zip(page.ids(), json_lines(page.emission), strict=True)
    ]
    for start in range(0, len(written), ROWS_PER_WRITE):
        yield "".join(written[start : start + ROWS_PER_WRITE])


def lines_with_ids(page: Page) -> Iterator[str]:
    """Rows as JSON lines that start with their id."""
    for id_, line in zip(page.ids(), json_lines(page.emission), strict=True):
        yield f'{{"id":"{id_}",{line[1:]}'
