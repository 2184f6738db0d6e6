"""Reading what is now: a query's content, and SELECTs that are answered once.

Everything is as of the last instant that is final, and from state: how much of the past is still
retained as changes makes no difference.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from thalweg.engine.shared.compile.columns import needed_columns
from thalweg.engine.shared.compile.history import gaps_of, looks_at_history
from thalweg.engine.shared.compile.query import compile_query
from thalweg.engine.shared.frames import FOREVER, names
from thalweg.engine.shared.results.present import NotKept, content, evaluate, frontier_of
from thalweg.engine.sinks.encode import json_rows
from thalweg.engine.sinks.flat import flat_names
from thalweg.engine.site.errors import Forgotten, WrongUse
from thalweg.engine.site.history import gap_text, has_ended
from thalweg.engine.site.status import instant_text
from thalweg.plan.catalog import Catalog, Field, QueryDef, StreamDef
from thalweg.plan.nodes import Node, Schema, base_streams, resolution_us
from thalweg.plan.shapes import shape_of
from thalweg.plan.windows import BEGINNING

if TYPE_CHECKING:
    from thalweg.engine.site.site import Site


@dataclass(frozen=True)
class Content:
    """The rows of a relation (`c0`, …) at an instant; None before any instant is final."""

    schema: Schema
    instant: int | None
    at: str | None  # the same as its streams write it
    rows: pl.DataFrame

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.schema)

    def tuples(self) -> Iterator[tuple[Any, ...]]:
        return self.rows.iter_rows()

    def json_lines(self) -> list[str]:
        """Each row as a JSON object."""
        line = json_rows(self.rows, self.columns)
        return self.rows.select(line.alias("line")).to_series().to_list()


def content_of(site: Site, query: QueryDef) -> Content:
    """What a standing query's result holds."""
    shape = shape_of(query)
    if shape.kind is not None:
        raise WrongUse(
            f"{query.name} is a stream ({shape.kind.value}): it has rows, one after the other, and "
            f"no content. Read its results, or create a query without {shape.kind.value}."
        )
    if query.name not in site.engine.roster.queries:
        raise WrongUse(f"{query.name} is parked: `thalweg ps` says why")
    try:
        instant, rows = site.engine.content(query)
    except NotKept as error:
        raise Forgotten(str(error)) from None
    return content_at(shape.schema, instant, shape.streams[0], rows)


def content_at(schema: Schema, instant: int, stream: StreamDef, rows: pl.DataFrame) -> Content:
    if instant < BEGINNING:
        return Content(schema, None, None, rows)
    # At the end of all streams there is no last instant.
    shown = FOREVER if instant >= FOREVER - 1 else instant
    text = instant_text(shown, stream.resolution_us, stream.timestamp_type.is_temporal)
    if stream.is_relation and instant == stream.beginning:
        text = "beginning"  # a table that has not changed since its first load
    return Content(schema, instant, text, rows.select(names(len(schema))))


# --- SELECT, answered once ------------------------------------------------------------------------


def select(site: Site, text: str) -> Content:
    """What a SELECT gives at the last instant that is final for all that it reads: standing
    queries' results, relations, and streams under windows that are kept."""
    if _STATEMENT.match(text):
        raise WrongUse(_ONE_SELECT)
    _let_tables_catch_up(site)
    with site.engine.exclusive():
        results = _results_in(site, text)
        catalog = site.catalog
        for name, query in results.items():
            catalog = catalog.without(query.name).with_definition(_as_relation(name, query))
        plan = _plan_of(site, text, catalog)
        read = {s.name: s for s in base_streams(plan)}
        # A table never keeps anybody waiting: it is as it is now.
        tables = {name for name in read if _is_table(site, name)}
        final = {name: _final(site, name, results) for name in read if name not in tables}
        at = min(final.values()) - 1 if final else _last_change(site, tables)
        if at < BEGINNING:
            raise WrongUse(f"no instant is final yet: {_still_waiting(final, results)}")
        try:
            contents = {
                name: content(site.engine, query, at)
                for name, query in results.items()
                if name in read
            }
            horizons = _horizons(site, plan, at, set(read) - set(contents))
        except NotKept as error:
            raise Forgotten(str(error)) from None
        gaps = gaps_of(plan, at, horizons)
        if gaps:
            gap = gaps[0]
            raise WrongUse(gap_text(gap, site.engine.streams[gap.stream], has_ended(site, gap)))
        rows = evaluate(site.engine, plan, at, horizons, contents)
    return content_at(plan.schema, at, next(iter(read.values())), rows)


def _let_tables_catch_up(site: Site) -> None:
    """Who has inserted a row reads it: a table's accepted rows are ticked over first. They wait for
    no other stream, so that takes a tick; if ticks fail, what is there is answered."""
    tables = [s.name for s in site.engine.streams.values() if s.is_table]
    until = time.monotonic() + LONGEST_CATCH_UP_S
    while tables and time.monotonic() < until:
        waiting = site.engine.store.inputs.backlogs()
        if not any(waiting.get(name) for name in tables):
            return
        time.sleep(0.01)


def _still_waiting(final: dict[str, int], results: dict[str, QueryDef]) -> str:
    name = min(name for name, upto in final.items() if upto <= BEGINNING)
    if name in results:
        streams = sorted({s.name for s in base_streams(results[name].plan)})
        return f"query {name} begins with the next tuples of {', '.join(streams)}"
    return f"{name} waits for a first tuple"


def _results_in(site: Site, text: str) -> dict[str, QueryDef]:
    """The standing queries whose names stand in the text."""
    words = {(quoted or word).lower() for word, quoted in _WORD.findall(text)}
    found = (site.catalog.find(word) for word in sorted(words))
    return {q.name: q for q in found if isinstance(q, QueryDef)}


LONGEST_CATCH_UP_S = 5.0
_ONE_SELECT = "one SELECT is answered at once; everything else is for `thalweg submit`"
_STATEMENT = re.compile(r"\s*(CREATE|DROP|ALTER)\b", re.IGNORECASE)
_WORD = re.compile(r'(\w+)|"((?:[^"]|"")+)"')


def _as_relation(name: str, query: QueryDef) -> StreamDef:
    """A result as something to read from."""
    shape = shape_of(query)
    columns = flat_names(shape.columns, ())
    fields = tuple(Field(c, f.type) for c, f in zip(columns, shape.schema, strict=True))
    like = shape.streams[0]
    return StreamDef(
        name, fields, "", like.timestamp_type, is_relation=True, resolution_us=like.resolution_us
    )


def _plan_of(site: Site, text: str, catalog: Catalog) -> Node:
    script = site.compiler(text, catalog, name="<cql>")
    made = script.changes[0].definition if len(script.changes) == 1 else None
    if not isinstance(made, QueryDef):
        raise WrongUse(_ONE_SELECT)
    if made.plan.is_stream:
        raise WrongUse(
            "a stream goes on and has no content to be read once: leave ISTREAM, DSTREAM or "
            "RSTREAM out, or submit it"
        )
    resolution_us(made.plan)
    return made.plan


def _is_table(site: Site, name: str) -> bool:
    stream = site.engine.streams.get(name)
    return stream is not None and stream.is_table


def _last_change(site: Site, tables: Collection[str]) -> int:
    """The instant of the newest change that a tick has taken in."""
    newest = (t for (s, _), t in site.engine.store.inputs.cuts().items() if s in tables)
    return max(newest, default=BEGINNING)


def _final(site: Site, name: str, results: Mapping[str, QueryDef]) -> int:
    """All instants before it are final for an input."""
    if name in results:
        query = results[name]
        if shape_of(query).kind is not None:
            raise WrongUse(
                f"{name} is a stream: it has no content to be read once. Read its results instead."
            )
        if query.name not in site.engine.roster.queries:
            raise WrongUse(f"{name} is parked: `thalweg ps` says why")
        return frontier_of(site.engine, query.name)
    # Where somebody has gone further than the watermark (IDLE), what comes below is late.
    return max(site.engine.watermark(name), site.engine.store.inputs.floor(name))


def _horizons(site: Site, plan: Node, at: int, streams: Iterable[str]) -> dict[str, int]:
    """From where on inputs are at hand, in all columns that are looked at."""
    inputs = site.engine.store.inputs
    needed = needed_columns([compile_query(plan)])
    found = {}
    for name in streams:
        found[name] = inputs.complete_from(name, needed[name])
        reduced = inputs.relation(name).reduced
        if at < reduced - 1:
            raise NotKept(f"what {name} held at {at} is no longer kept: others lag behind it")
        if reduced > BEGINNING and looks_at_history(plan, name):
            found[name] = reduced - 1
    return found
