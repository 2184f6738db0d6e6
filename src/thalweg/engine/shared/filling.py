"""Tuples and columns of the past, of a stream that is fed by another node.

Of such a stream only those rows and columns come that somebody looks at, and what nobody needs any
more goes. When a query wants more, all that its windows begin with is handed over once more. A
stream's tuples are a set by timestamp and position: those that are not here come in, and those that
are get the columns that they have come without, and labels beside those that they have. Who has
read them before does not look at these.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection

import polars as pl

from thalweg.engine.shared.expressions.translate import to_polars
from thalweg.engine.shared.frames import POS, TS, H, name
from thalweg.engine.shared.ingest.normalise import ROW, normalise
from thalweg.engine.shared.ingest.waiting import waiting
from thalweg.engine.shared.state.hashing import with_hash
from thalweg.engine.shared.state.manifest import Manifest
from thalweg.engine.shared.state.names import LABEL, LABELLED, stem_table
from thalweg.engine.shared.state.segments import (
    BundleWriter,
    Section,
    Segment,
    SegmentReader,
)
from thalweg.engine.shared.state.store import Store
from thalweg.engine.shared.tick.messages import LANDED
from thalweg.plan.catalog import StreamDef

_FOUND = "_found"


def lacking(
    store: Store,
    manifest: Manifest,
    stream: StreamDef,
    columns: Collection[str],
    batch: pl.DataFrame,
    at: pl.Series,
) -> pl.Series:
    """Fill in columns of tuples that are here; which ones are not. Between ticks. `batch` are
    tuples as they are pushed, `at` their positions."""
    rows = normalise(stream, batch).rows
    places = [i for i, f in enumerate(stream.fields) if f.name in columns]
    positions = at.cast(pl.Int64).gather(rows[ROW]).alias(POS)
    known = rows.select(TS, *(name(i) for i in places)).with_columns(positions)
    before = store.inputs.landed_files()
    is_labelled = stream.source is not None and stream.source.startswith(LABELLED)
    label = [name(i) for i, f in enumerate(stream.fields) if is_labelled and f.name == LABEL]
    filling = _Filling(store, manifest, stream.name, known, label)
    try:
        with store.transaction():
            old = filling.segments()
            filling.landed()
    except BaseException:
        manifest.reread()
        raise
    manifest.folder.remove({s.bundle for s in old} - manifest.live())
    (store.files / LANDED).remove(before - store.inputs.landed_files())
    return ~filling.is_here


class _Filling:
    """`known` has `_ts`, `_pos`, and the columns that are to be filled in (`c…`), of which those
    that are added to have words between commas."""

    def __init__(
        self,
        store: Store,
        manifest: Manifest,
        stream: str,
        known: pl.DataFrame,
        added_to: Collection[str] = (),
    ) -> None:
        self._store, self._manifest, self._stream, self._known = store, manifest, stream, known
        self._added_to = added_to
        self.is_here = pl.repeat(False, known.height, eager=True)

    def segments(self) -> list[Segment]:
        """Those that are replaced."""
        if not self._known.height:
            return []
        folder = self._manifest.folder
        writer = BundleWriter(folder, f"filled-{uuid.uuid4().hex[:8]}.arrow")
        reader, old = SegmentReader(), []
        low, high = (int(t) for t in (self._known[TS].min(), self._known[TS].max()))  # type: ignore[arg-type]
        for keys in self._store.inputs.stems().get(self._stream, ()):
            table = stem_table(self._stream, keys)
            for segment in self._manifest.of(table):
                if segment.high < low or segment.low > high:
                    continue
                filled = self._filled(reader.read(folder, segment).frame)
                if filled is None:
                    continue
                if keys:  # they may be made of what is filled in
                    filled = with_hash(filled.drop(H), [to_polars(k) for k in keys]).sort(H)
                writer.add(table, filled, segment.low, segment.high)
                old.append(segment)
        added = writer.close()
        self._manifest.drop(old)
        self._manifest.adopt(added)
        return old

    def landed(self) -> None:
        folder, inputs = self._store.files / LANDED, self._store.inputs
        writer = BundleWriter(folder, f"{uuid.uuid4().hex}.arrow")
        filled: dict[int, Section] = {}
        for number, landed, came in waiting(self._store, self._stream):
            assert not landed.shift, "who feeds it knows the positions"
            frame = self._filled(came)
            if frame is not None:
                filled[number] = writer.write(frame)
        writer.close()
        inputs.move_landed(filled)

    def _filled(self, frame: pl.DataFrame) -> pl.DataFrame | None:
        """None if it stays as it is."""
        known, number = self._known, pl.int_range(pl.len(), dtype=pl.Int64).alias(_FOUND)
        numbered = known.with_columns(number)
        given = [c for c in known.columns if c not in (TS, POS)]
        younger = [c for c in given if c not in frame.columns]  # the stream was given them later
        frame = frame.with_columns(pl.lit(None, dtype=known.schema[c]).alias(c) for c in younger)
        both = frame.join(numbered, on=[TS, POS], how="left", suffix="_new", maintain_order="left")
        found = both[_FOUND].drop_nulls()
        self.is_here = self.is_here.scatter(found, True)
        is_found = pl.col(_FOUND).is_not_null()
        here = both.filter(is_found)
        columns = [c for c in given if here[c].ne_missing(here[f"{c}_new"]).any()]
        if not columns:
            return None
        values = (
            pl.when(is_found).then(self._new(c)).otherwise(pl.col(c)).alias(c) for c in columns
        )
        return both.with_columns(values).select(frame.columns)

    def _new(self, column: str) -> pl.Expr:
        new = pl.col(f"{column}_new")
        if column not in self._added_to:
            return new
        both = pl.concat_str([pl.col(column), new], separator=",", ignore_nulls=True)
        return pl.when(pl.col(column) == new).then(new).otherwise(both)
