"""INSERT and DELETE: parts of a script, which is run as a whole or not at all."""

from __future__ import annotations

from collections.abc import Iterable

from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.ingest.arriving import Receipt
from thalweg.engine.shared.ingest.normalise import IngestError
from thalweg.engine.shared.ingest.table_door import TableDoor
from thalweg.engine.site.book import kind_of
from thalweg.engine.site.errors import WrongUse
from thalweg.engine.site.feeds import Feeds
from thalweg.engine.site.scripts import Write
from thalweg.engine.sources.registry import is_pushed
from thalweg.engine.sources.rows import frame_of
from thalweg.plan.catalog import Catalog, StreamDef
from thalweg.plan.windows import FOREVER


def write_rows(
    engine: SharedEngine, feeds: Feeds, catalog: Catalog, writes: Iterable[Write]
) -> list[str]:
    """Land what the writes say, in order, once all definitions of the script stand; gives the
    streams that have changed. The caller holds the landing and a transaction. Raises WrongUse."""
    changed = []
    for write in writes:
        stream = catalog.find(write.stream.name)
        if not isinstance(stream, StreamDef):
            continue  # the script drops it further down
        check_open(engine, feeds, stream)
        try:
            receipt = _write(engine, stream, write)
        except IngestError as error:
            raise WrongUse(str(error)) from None
        if receipt.rejected or receipt.late:
            verb = "INSERT INTO" if write.gone is None else "DELETE FROM"
            reason = receipt.reason or "its timestamp is behind what is final"
            raise WrongUse(f"{verb} {stream.name}: {reason}. Nothing of the script was run.")
        changed.append(stream.name)
    return changed


def check_open(engine: SharedEngine, feeds: Feeds, stream: StreamDef) -> None:
    """Raises WrongUse, or Busy, if rows can't be handed in now."""
    feed = feeds.find(stream.name)
    if not is_pushed(stream) or (feed is not None and feed.thread is not None):
        raise fed_elsewhere(stream)
    if engine.store.inputs.floor(stream.name) >= FOREVER:
        raise finished(stream)
    if feed is not None:
        feed.wait_for_room(0.0)


def fed_elsewhere(stream: StreamDef) -> WrongUse:
    return WrongUse(
        f"{kind_of(stream)} {stream.name} is fed from {stream.source or 'this process'!r}: "
        "tuples can only be pushed to one without FROM"
    )


def finished(stream: StreamDef) -> WrongUse:
    return WrongUse(f"{stream.name} was finished; drop and re-create it to push again")


def _write(engine: SharedEngine, stream: StreamDef, write: Write) -> Receipt:
    if write.gone is not None:
        return TableDoor(engine, stream).delete(write.gone)
    rows = frame_of(stream, [dict(zip(write.columns, row, strict=True)) for row in write.rows])
    if stream.is_table:
        return TableDoor(engine, stream).upsert(rows)
    return engine.landing.push(stream, rows)
