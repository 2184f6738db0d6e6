"""Feeds a stream of due rows from the unfiltered stream, at its home (`labelling.py`).

It reads a publication of that as a mirror reads another node's: from an instant on, in order, each
row once. All classes look at a batch in one pass (`passing.py`); the rows that are due for some
class land with their labels. What the classes hold then is written down now and then, and after a
restart made again of what came since.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import polars as pl

from thalweg.engine.shared.frames import TS
from thalweg.engine.shared.state.names import LABEL
from thalweg.engine.site.errors import Forgotten, SiteError
from thalweg.engine.site.publications import no_rows
from thalweg.engine.sources.feed import Feed
from thalweg.plan.catalog import PLACE, StreamDef
from thalweg.plan.windows import BEGINNING
from thalweg.runtime.data.client import Unreachable
from thalweg.runtime.data.messages import Range, Read
from thalweg.runtime.data.mirror import Lost, MirrorSource
from thalweg.runtime.data.routes import Place, Route
from thalweg.runtime.network.labels.book import Book, Generation, tolerant_of
from thalweg.runtime.network.labels.passing import Due, Passing, labels

if TYPE_CHECKING:
    from thalweg.runtime.network.labels.labelling import Labelling

_READ_FOR_S, _LOOK_EVERY_S = 1.0, 0.1
KEEP_EVERY_S = 5.0
_KEEP_SHARE = 20  # or so many times as long as it takes
_INSTANT, _POSITION = (f.name for f in PLACE)


class LabelSource(MirrorSource):
    def __init__(self, due: StreamDef, labelling: Labelling) -> None:
        super().__init__(
            due,
            "its classes",
            lambda: labelling.routes(due),
            lambda _: self._own(),  # type: ignore[arg-type,return-value]
            lambda: (BEGINNING, None, None),
            lambda generation: labelling.switched(due.name, generation),
            labelling.taking(due.name),
        )
        self._due, self._labelling = due, labelling
        self._passing: tuple[str, Passing] | None = None  # of a generation; None: to be made again
        self._book: Book | None = None  # as it was when classes were last looked at
        self._kept_s, self._keep_s = time.monotonic(), KEEP_EVERY_S

    def _own(self) -> Reading:
        return Reading(self._due, self._labelling)

    # --- rows

    def _push(self, feed: Feed, rows: pl.DataFrame, place: Place, promise: int) -> None:
        generation = self._generation(place.publication)
        passing = self._at(self.place(feed), generation)
        self._passing = None  # it is of no use, should the rows not land
        rows = _in_order(rows)
        super()._push(feed, self._labelled(rows, passing.run(rows), generation), place, promise)
        passing.instant = place.instant
        self._passing = generation.name, passing
        now = time.monotonic()
        if now - self._kept_s >= self._keep_s:
            self._labelling.keep(self._due.name, generation, passing)
            self._kept_s = time.monotonic()
            self._keep_s = max(KEEP_EVERY_S, _KEEP_SHARE * (self._kept_s - now))

    def _labelled(self, rows: pl.DataFrame, due: Due, generation: Generation) -> pl.DataFrame:
        book = self._labelling.book(self._due.name)
        at, texts = labels(due, book.words(generation.number))
        return rows[at].with_columns(pl.col(_INSTANT).alias(TS), texts.alias(LABEL))

    def adopt(self, feed: Feed, old: str, route: Route, rows: pl.DataFrame) -> None:
        """A generation begins: the past of what starts with it."""
        place = self.place(feed)
        passing = self._at(place, self._generation(old))
        if passing.instant != route.since:
            raise Unreachable(f"{self._due.name} is at {passing.instant}, not at {route.since}")
        self._passing = None
        generation = self._generation(route.publication)
        past = self._past(generation, rows.filter(pl.col(_INSTANT) < route.since), passing)
        self._labelling.begin(self._due, generation, passing)
        super().adopt(feed, old, route, past)
        self._passing = generation.name, passing

    def _past(self, generation: Generation, rows: pl.DataFrame, passing: Passing) -> pl.DataFrame:
        """What is handed over; the classes that begin are in the pass then."""
        book, base = self._labelling.book(self._due.name), self._labelling.base(self._due)
        rows = _in_order(rows)
        new = [c for c in book.classes if c.generation == generation.number]
        apart = Passing()
        apart.start(base, {c.number: tolerant_of(c.packed, base) for c in new})
        starts = book.fresh(generation.number)
        words = {s.class_: str(s.number) for s in starts if not s.joins}
        at, texts = labels(apart.run(rows), words)
        parts = [rows[at].with_columns(texts.alias(LABEL))]
        for start in (s for s in starts if s.joins):
            held = passing.held(start.class_)
            if held is not None:
                number = pl.lit(str(start.number), dtype=pl.String).alias(LABEL)
                parts.append(held.with_columns(number).select(parts[0].columns))
        passing.absorb(apart)
        return _together(parts).with_columns(pl.col(_INSTANT).alias(TS))

    # --- what has passed

    def _generation(self, name: str) -> Generation:
        found = self._labelling.book(self._due.name).generation(name)
        if found is None:
            raise Unreachable("it is being dropped")
        return found

    def _at(self, place: Place, generation: Generation) -> Passing:
        """What has passed up to where the stream has come."""
        passing = None
        if self._passing is not None and self._passing[0] == generation.name:
            passing = self._passing[1]
        if passing is None or passing.instant != place.instant:
            passing = self._again(place, generation)
        book = self._labelling.book(self._due.name)
        if book is not self._book or not passing.families:
            begun = {c.number: c for c in book.begun(generation.number)}
            passing.end(passing.classes - begun.keys())
            lacking = [c for n, c in begun.items() if n not in passing.classes]
            if lacking and passing.instant > BEGINNING:
                raise Lost(f"{self._due.name}: what its classes hold is gone")
            base = self._labelling.base(self._due)
            passing.start(base, {c.number: tolerant_of(c.packed, base) for c in lacking})
            self._book = book
        return passing

    def _again(self, place: Place, generation: Generation) -> Passing:
        """From what is written down, and what came since."""
        self._book = None
        passing = self._labelling.kept(self._due, generation)
        if passing.instant >= place.instant:
            return passing
        base, book = self._labelling.base(self._due), self._labelling.book(self._due.name)
        begun = {c.number: c for c in book.begun(generation.number)}
        if passing.instant == BEGINNING:
            passing.start(base, {n: tolerant_of(c.packed, base) for n, c in begun.items()})
        since = passing.instant
        rows = self._own().between(generation.publication, since, place.instant)
        passing.run(_in_order(rows))
        passing.instant = place.instant
        return passing


class Reading:
    """What a source reads, as if it were another node."""

    def __init__(self, due: StreamDef, labelling: Labelling) -> None:
        if labelling.site is None:
            raise Unreachable("this node is about to begin")
        if (why := labelling.outdated(due.name)) is not None:
            raise Lost(why)
        self._due, self._labelling, self._site = due, labelling, labelling.site
        self._ended = False

    def read(self, ticket: Read) -> Iterator[tuple[Range, pl.DataFrame]]:
        since, until = ticket.since, time.monotonic() + _READ_FOR_S
        while not self._ended and time.monotonic() < until:
            seen = self._site.changes.count  # before looking, so that nothing slips in behind
            book = self._labelling.book(self._due.name)
            generation = book.generation(ticket.publication)
            if generation is None:
                raise Unreachable("it is being dropped")
            if since == BEGINNING and all(s.joins for s in book.fresh(generation.number)):
                nothing = no_rows(self._labelling.publications.query(generation.publication))
                yield Range(BEGINNING, generation.since + 1), nothing
                return
            upto, rows = self._batch(generation.publication, since)
            if upto > since:
                yield Range(since, upto), rows
                since = upto
            else:
                self._site.changes.wait(seen, _LOOK_EVERY_S)

    def between(self, publication: str, since: int, upto: int) -> pl.DataFrame:
        """Once more what has been read in [since, upto)."""
        reached, rows = self._batch(publication, since)
        if reached < upto:
            raise Unreachable(f"{publication} has come to {reached}, not yet to {upto}")
        when = TS if since == BEGINNING else _INSTANT
        return rows.filter(pl.col(when).is_between(since, upto, closed="left"))

    def _batch(self, publication: str, since: int) -> tuple[int, pl.DataFrame]:
        try:
            return self._rows(publication, since)
        except Forgotten as error:
            raise Lost(str(error)) from None
        except SiteError as error:
            raise Unreachable(str(error)) from None

    def _rows(self, publication: str, since: int) -> tuple[int, pl.DataFrame]:
        site, publications = self._site, self._labelling.publications
        run = site.engine.roster_entry(publication)
        if run is None:
            raise Unreachable(f"{publication} was given up")
        pieces = list(publications.read(publication, since))
        upto = pieces[-1].upto if pieces else since
        if run.started is not None and since <= run.started and upto <= run.started:
            pieces, upto = [], since  # what was before comes with its first instant
        nothing = no_rows(publications.query(publication))
        return upto, pl.concat([nothing, *(p.rows for p in pieces)])

    def ask(self, request: object) -> None:
        """What is not needed any more goes when what has passed is written down."""

    def interrupt(self) -> None:
        self._ended = True

    def close(self) -> None: ...


def _in_order(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.sort(_INSTANT, _POSITION, maintain_order=True)


def _together(parts: list[pl.DataFrame]) -> pl.DataFrame:
    """Each row once, with all of its labels."""
    every = pl.concat(parts)
    own = [c for c in every.columns if c not in (LABEL, _INSTANT, _POSITION)]
    return (
        every.group_by(_INSTANT, _POSITION, maintain_order=True)
        .agg(*(pl.col(c).first() for c in own), pl.col(LABEL).str.join(","))
        .select(every.columns)
        .sort(_INSTANT, _POSITION)
    )
