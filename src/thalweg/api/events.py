"""Results as server-sent events: each row has its id, and a client that keeps the last id it saw
gets every row exactly once, whatever breaks in between.

After every tick an event `frontier` says up to where the result is final, and moves the client's id
on, also past instants about which the query has nothing to say. If the first rows are no longer
kept, an event `gap` says so at the start.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator

from starlette.concurrency import run_in_threadpool

from thalweg.api.tick_signal import TickSignal, rung
from thalweg.engine.sinks.encode import json_lines, mark_line
from thalweg.engine.site import Position, Site
from thalweg.engine.site.positions import START
from thalweg.engine.site.reading import Page
from thalweg.plan.catalog import QueryDef

KEEP_ALIVE_S = 10.0
ROWS_PER_WRITE = 1_000


async def events(
    site: Site, tick_signal: TickSignal, query: QueryDef, after: Position
) -> AsyncIterator[str]:
    """All rows behind a position, then rows as they come, until the query ends."""
    reader = site.reader(query)
    yield "retry: 1000\n\n"
    if after == START and (since := site.complete_from(query.name)) is not None:
        yield f"event: gap\ndata: {json.dumps({'complete_from': since})}\n\n"
    while True:
        tick = tick_signal.next
        end = site.ending(reader)  # before looking, so that no row is left behind it
        frontier = reader.frontier()
        pages = reader.pages(after, frontier)
        while (page := await run_in_threadpool(next, pages, None)) is not None:
            for part in await run_in_threadpool(lambda p: list(_parts(p)), page):
                yield part
        if frontier > after:
            after = frontier
            lacking = await run_in_threadpool(site.lacking, query.name)
            data = json.dumps({"frontier": after.instant, **lacking})
            yield f"event: frontier\nid: {after}\ndata: {data}\n\n"
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
    if page.mark is not None:
        yield f"event: version\nid: {page.last}\ndata: {mark_line(page.emission)}\n"


def lines_with_ids(page: Page) -> Iterator[str]:
    """Rows as JSON lines that start with their id; the last may be the end mark of a version."""
    for id_, line in zip(page.ids(), json_lines(page.emission), strict=True):
        yield f'{{"id":"{id_}",{line[1:]}'
    if page.mark is not None:
        yield f'{{"id":"{page.last}",{mark_line(page.emission)[1:]}'
