"""A query is replaced by another of its name, at an instant.

The old version has said everything before that instant, and the new one says everything from it on.
What the old one held is taken back: by the new one, which says only what is different, if both have
the same columns; otherwise by the old one itself, with its last words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import polars as pl

from thalweg.engine.shared.frames import TS
from thalweg.engine.shared.results.archive import Said
from thalweg.engine.shared.results.content import bag_of, packed, summed, unpacked, weighed
from thalweg.engine.shared.results.present import NotKept, content
from thalweg.engine.shared.state.runs import Begun
from thalweg.engine.shared.state.versions import Ended, Lineage, first
from thalweg.plan.catalog import QueryDef
from thalweg.plan.shapes import shape_of
from thalweg.plan.windows import BEGINNING, FOREVER

if TYPE_CHECKING:
    from thalweg.engine.shared.engine import SharedEngine


class CannotReplace(ValueError):
    """A query that can't be replaced, and what to do instead."""


def retire(engine: SharedEngine, old: QueryDef, new: QueryDef) -> int | None:
    """End the old version in the book; gives the instant at which the new one starts, None if that
    is for the new one to say. The caller holds the engine and a transaction."""
    versions = engine.store.versions
    begun = engine.store.runs.begun([old.name])[old.name]
    lineage = versions.lineage(old.name) or first(begun.run, begun.epoch)
    if lineage.pending:
        # It has not said a word, so nobody knows it: the one before it gets another successor.
        ended = versions.ended(old.name)[-1]
        ended = msgspec.structs.replace(ended, closes=_closes(ended, new))
        version = lineage.version
    else:
        ended = _ended(engine, old, new, begun, lineage)
        version = lineage.version + 1
    successor = Lineage(lineage.origin, version, ended.instant, ended.last_tick + 1, pending=True)
    # Its changes add up to what it holds from there on; what it takes over lies below them.
    taken_over = None if ended.closes or ended.content is None else unpacked(ended.content)
    engine.contents.begin_with(old.name, taken_over, ended.last_tick)
    written = engine.archive.write_out(old.name)
    if written is not None:
        engine.results.note(written)
    versions.end(old.name, ended, successor)
    engine.leave(old.name)
    return None if ended.instant == BEGINNING else ended.instant


def _ended(
    engine: SharedEngine, old: QueryDef, new: QueryDef, begun: Begun, lineage: Lineage
) -> Ended:
    instant = _reached(engine, old.name)
    if instant == FOREVER:
        raise CannotReplace(
            f"{old.name} has finished, because its streams have ended: there is no instant from "
            "which another version could go on. DROP it and CREATE it anew."
        )
    if instant is None:  # it is parked
        spoken = (int(p.rows[TS][-1]) + 1 for p in _pages(engine, old.name))  # in order of time
        instant = max(spoken, default=BEGINNING)
        present = min(engine.watermark(s.name) for s in shape_of(new).streams)
        instant = max(instant, present if present < FOREVER else BEGINNING)
    held = _content(engine, old, lineage)
    ended = Ended(
        begun.run,
        lineage.version,
        instant,
        shape_of(old).columns,
        tuple(str(f.type) for f in shape_of(old).schema),
        begun.epoch,
        engine.store.tick()[0],
        lineage.base,
        tuple(engine.archive.flows(old.name)),
        content=packed(held) if held is not None and held.height else None,
    )
    return msgspec.structs.replace(ended, closes=_closes(ended, new))


def _closes(ended: Ended, new: QueryDef) -> bool:
    """Whether the new version can't say the difference."""
    shape = shape_of(new)
    types = tuple(str(f.type) for f in shape.schema)
    return shape.kind is not None or (ended.columns, ended.types) != (shape.columns, types)


def _reached(engine: SharedEngine, query: str) -> int | None:
    """The instant before which the query has said everything; None if it does not run."""
    run = engine.roster.run_of(query)
    if run is None:
        return None
    reached = engine.store.frontier(run.flow)
    return BEGINNING if reached is None else reached


def _pages(engine: SharedEngine, query: str) -> list[Said]:
    lineage = engine.store.versions.lineage(query)
    return list(engine.archive.pages(query, ticks=(lineage.base if lineage else 0, FOREVER)))


def _content(engine: SharedEngine, query: QueryDef, lineage: Lineage) -> pl.DataFrame | None:
    """What a relation holds, with multiplicities in `_w`. A stream holds nothing."""
    if shape_of(query).kind is not None:
        return None
    if query.reason is not None and not can_be_told(engine, query):
        raise CannotReplace(
            f"{query.name} is parked, and what it holds can't be told: {query.reason}. "
            "DROP it and CREATE it anew."
        )
    if query.name in engine.roster.queries:
        try:
            return bag_of(content(engine, query))
        except NotKept as error:
            raise CannotReplace(f"{error}. DROP it and CREATE it anew.") from None
    oldest = engine.store.outputs.oldest()
    if oldest is not None and oldest[0] > lineage.base:
        raise CannotReplace(
            f"{query.name} is parked, and its first results are no longer kept, so what it holds "
            "is not known and can't be taken back. DROP it and CREATE it anew."
        )
    changes = [weighed(page.rows) for page in _pages(engine, query.name)]
    return summed([*engine.contents.base(query.name), *changes])


def can_be_told(engine: SharedEngine, query: QueryDef) -> bool:
    """Whether it is known what a parked query holds: its columns are, and its rows are its own or
    can be made of its group's."""
    return bool(shape_of(query).schema) and engine.can_read(query.name)
