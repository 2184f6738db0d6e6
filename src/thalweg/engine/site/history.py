"""Queries that begin with less than their windows ask for: from when on, why, and what helps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from thalweg.engine.shared.compile.history import Gap, complete_from
from thalweg.engine.shared.frames import FOREVER
from thalweg.engine.shared.ingest.normalise import FURTHEST
from thalweg.engine.site.status import instant_text
from thalweg.plan.catalog import QueryDef, StreamDef
from thalweg.plan.lengths import length_text
from thalweg.plan.text import window_text
from thalweg.plan.windows import BEGINNING, RowsWindow, TimeWindow

if TYPE_CHECKING:
    from thalweg.engine.site.site import Site


@dataclass(frozen=True, slots=True)
class Notice:
    """What a query lacks of its past. `complete_from` is the instant from which its result is that
    of a query that was always there; None where none can be named."""

    query: str
    stream: str
    since: str | None
    complete_from: str | None
    text: str


def notices(site: Site, queries: Iterable[QueryDef]) -> list[Notice]:
    """What queries that were just submitted lack; FROM NOW asks for nothing of the past."""
    found = []
    for query in queries:
        run = site.engine.roster.queries.get(query.name)
        if run is None or query.from_now:
            continue
        for gap in run.gaps:
            stream = site.engine.streams[gap.stream]
            ended = has_ended(site, gap)
            since = None if ended else _instant(gap.since, stream)
            until = None if ended or gap.until >= FOREVER else _instant(gap.until, stream)
            text = f"{query.name}: {gap_text(gap, stream, ended)}"
            found.append(Notice(query.name, stream.name, since, until, text))
    return found


def still_missing(site: Site, query: QueryDef) -> list[str]:
    """What a standing query's windows lack of the past, up to its last final instant."""
    roster = site.engine.roster
    registered, run = roster.queries.get(query.name), roster.run_of(query.name)
    if registered is None or run is None:
        return []
    reached = site.engine.store.frontier(run.flow) or BEGINNING
    streams = site.engine.streams
    gaps = [g for g in registered.gaps if reached <= g.until]
    return [gap_text(g, streams[g.stream], has_ended(site, g)) for g in gaps]


def has_ended(site: Site, gap: Gap) -> bool:
    """Whether nothing of the stream is at hand, and nothing more will come."""
    return site.engine.watermark(gap.stream) >= FOREVER and gap.since > FURTHEST


def gap_text(gap: Gap, stream: StreamDef, has_ended: bool) -> str:
    if gap.window is None:
        return (
            f"{stream.name} is at hand from {_instant(gap.since, stream)} on. What it held before "
            "was not kept by an older version: drop it and create it again to have it whole"
        )
    window = window_text(gap.window, stream, stream.fields)
    missing = f"{', '.join(gap.columns)} of {stream.name}" if gap.columns else stream.name
    if has_ended:
        gone = f"{missing} has ended and is not kept, so {window} stays empty"
        return f"{gone}. {_reason(gap, stream)}"
    since = _instant(gap.since, stream)
    until = _until(gap, stream, window)
    return f"{missing} is at hand from {since} on, {until}. {_reason(gap, stream)}"


def _until(gap: Gap, stream: StreamDef, window: str) -> str:
    if isinstance(gap.window, RowsWindow):
        return f"so {window} fills with the rows that come from there on"
    if gap.until >= FOREVER:
        return f"so {window} will never have what came before"
    return f"so {window} is filling until {_instant(gap.until, stream)}"


def _reason(gap: Gap, stream: StreamDef) -> str:
    if stream.is_relation:
        return "Of what was inserted and deleted before, only what is left was kept"
    if gap.columns:
        return "What is WIDE is kept only while a query reads it: declare it without WIDE"
    if isinstance(gap.window, TimeWindow) and gap.window.length is not None:
        length = length_text(gap.window.length + gap.window.slide - 1, stream)
        kept = f"RETAIN {length} in CREATE STREAM {stream.name}"
    else:
        kept = f"a long enough RETAIN in CREATE STREAM {stream.name}"
    so_far = "" if stream.retain is None else f" (now {length_text(stream.retain, stream)})"
    return f"No query looked further back: {kept}{so_far} keeps history for queries to come"


def completion(
    gaps: tuple[Gap, ...], frontier: int | None, stream: StreamDef
) -> tuple[str | None, bool]:
    """From when on a result is complete (`never` where no instant can be named; None where it
    always was), and whether it is still filling."""
    until = complete_from(gaps)
    if until <= BEGINNING:
        return None, False
    if until >= FOREVER:
        return "never", False
    return _instant(until, stream), frontier is None or frontier <= until


def _instant(instant: int, stream: StreamDef) -> str:
    return instant_text(instant, stream.resolution_us, stream.timestamp_type.is_temporal) or "-"
