"""What other nodes read: a stream or relation of this site, from an instant on, in order.

A subscription is a query of this site's own (`pub/…`), one more member of a group. Its rows are
those of all queries: final, in order of instants, with a frontier, and kept until the reader says
that it has them. It begins with what the reader's windows ask for of the past.

Of a stream the rows say `_instant` and `_position`, so that a tuple is the same everywhere; of a
relation they are its changes, the first of which are its content.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import polars as pl

from thalweg.engine.pieces import Piece
from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.frames import OP, TS, dtype, name
from thalweg.engine.shared.registering import Past
from thalweg.engine.shared.results.present import frontier_of
from thalweg.engine.shared.state.names import ENGINE_FED, LABELLED, PUBLISHED
from thalweg.engine.shared.tick.cut import watermark
from thalweg.engine.site.delays import Took
from thalweg.engine.site.errors import Forgotten, SiteError, Unknown
from thalweg.engine.site.positions import START, Position
from thalweg.engine.site.reading import Reader
from thalweg.engine.site.sharers import Sharers
from thalweg.plan.catalog import PLACE, Definition, QueryDef, StreamDef
from thalweg.plan.shapes import shape_of
from thalweg.plan.windows import BEGINNING, FOREVER

if TYPE_CHECKING:
    from thalweg.engine.site.site import Site


MIRRORS = "publication:"  # FROM 'publication:NODE': a stream that is fed by another node


def is_publication(query: str) -> bool:
    return query.startswith(PUBLISHED)


def is_mirror(definition: Definition) -> bool:
    source = definition.source if isinstance(definition, StreamDef) else None
    return source is not None and source.startswith(MIRRORS)


def is_engine_fed(definition: Definition) -> bool:
    source = definition.source if isinstance(definition, StreamDef) else None
    return source is not None and source.startswith(ENGINE_FED)


def labels_of(definition: Definition) -> str | None:
    """The base stream whose due rows a stream has, each with the tolerance classes for which it is
    due (`runtime/network/labels/labelling.py`); None of all others."""
    source = definition.source if isinstance(definition, StreamDef) else None
    is_it = source is not None and source.startswith(LABELLED)
    return source.removeprefix(LABELLED) if is_it and source is not None else None


def is_internal(definition: Definition) -> bool:
    """What stands for other nodes' or an engine's sake, or because of them; no user has made it."""
    made = is_mirror(definition) or is_engine_fed(definition)
    return made or labels_of(definition) is not None or is_publication(definition.name)


def publication_name(stream: str, reader: str, number: int) -> str:
    return f"{PUBLISHED}{stream}>{reader}.{number}"


def reader_of(publication: str) -> str:
    """The node for which it is kept."""
    _, _, rest = publication.rpartition(">")
    return rest.rpartition(".")[0]


class Publications:
    def __init__(self, site: Site) -> None:
        self._site = site
        self._sharing = threading.Lock()
        # Instants for which readers wait, by the stream that this site has from elsewhere.
        self.demanded: dict[str, int] = {}
        self.sharers = Sharers(site.engine.store)
        for query in site.catalog.queries():
            if is_publication(query.name):
                for reader in self.sharers.of(query.name):
                    site.engine.readers.keep(reader, query.name)

    def open(
        self,
        stream: str,
        reader: str,
        number: int,
        reach: int | None,
        where: Sequence[str] | None = None,
        since: int | None = None,
        columns: Sequence[str] | None = None,
        past: Past | None = None,
    ) -> tuple[str, Past]:
        """Begin to keep a stream for a reader, with `reach` instants of its past (None: all that
        there is), some columns of those rows that fulfil one of the conditions; how far it has
        come. It begins now, or at an instant of the past that is held, or with a `past` that is to
        come. Asked again, it answers the same."""
        found = self._site.stream(stream)
        known = [f.name for f in found.fields]
        for column in columns or ():
            if column not in known:
                raise Unknown("column", column, known)
        wanted = publication_name(found.name, reader, number)
        self._site.engine.readers.keep(wanted)
        text = publication_text(found, wanted, reach, where, columns)
        standing = self._site.catalog.find(wanted)
        if standing is None:
            if past is None and since is not None:
                past = Past(since)
            self._site.execute(text, pasts={} if past is None else {found.name: past})
        elif not isinstance(standing, QueryDef) or standing.text != text:
            raise SiteError(f"{wanted} is the name of another publication")
        run = self._site.engine.roster_entry(wanted)
        if run is None:
            raise SiteError(f"{wanted} can't be read: it was given up")
        watermark = BEGINNING if run.started is None else run.started
        if found.is_relation:
            return wanted, Past(watermark)
        complete = dict(run.horizons).get(found.name, BEGINNING)
        if reach is not None and run.started is not None:
            complete = max(complete, run.started - reach)
        return wanted, Past(watermark, complete)

    def took(self, publication: str) -> Took | None:
        """How long its last rows have taken up to here."""
        query = self.query(publication).name
        return self._site.delays.of(self._site.engine.roster.group_of.get(query, query))

    def close(self, publication: str) -> None:
        with self._sharing:
            self._site.engine.readers.forget(publication)
            unread = self.sharers.remove(publication)
            if unread is not None and self._site.catalog.find(unread) is not None:
                self._site.stop(unread)

    def share(self, publication: str, reader: str) -> int | None:
        """One more reader of a relation: it begins with what that holds now. The instant of that;
        None if nothing was said yet. Raises SiteError if it can't be told."""
        query, engine = self.query(publication), self._site.engine
        with self._sharing, self._site.gate.between_ticks():
            if self._site.catalog.find(publication) is None:
                raise SiteError(f"{publication} has ended")
            if frontier_of(engine, publication) <= BEGINNING:
                self.sharers.add(reader, publication, None, None)
                engine.readers.keep(reader, publication)
                return None
            first, content = engine.content(query)
            self.sharers.add(reader, publication, first, content)
            engine.readers.keep(reader, publication)
            engine.readers.acknowledge(reader, first)
            return first

    def go_on(self, publication: str, reader: str, since: int) -> None:
        """One more reader, who has all that was said before an instant. Raises SiteError."""
        with self._sharing:
            query = self.query(publication)
            is_taken = self._site.catalog.find(reader) is not None or reader in self.sharers.all()
            if is_taken and self.sharers.find(reader).of != query.name:
                raise SiteError(f"{reader} is the name of another publication")
            self.sharers.go_on(reader, query.name, since)
            self._site.engine.readers.keep(reader, query.name)
            self._site.engine.readers.acknowledge(reader, since)

    def query(self, publication: str) -> QueryDef:
        """What is computed for a reader."""
        found = self._site.catalog.find(self.sharers.find(publication).of)
        if not is_publication(publication) or not isinstance(found, QueryDef):
            raise Unknown("publication", publication, [])
        return found

    def read_by(self, reader: str) -> list[str]:
        """What is kept for a reader."""
        return [n for n in self.names() if reader_of(n) == reader]

    def names(self) -> list[str]:
        """What is kept, a name for each reader."""
        queries = [q.name for q in self._site.catalog.queries() if is_publication(q.name)]
        return sorted(reader for q in queries for reader in self.sharers.of(q))

    def read(self, publication: str, since: int) -> Iterator[Piece]:
        """From an instant on up to the frontier. Raises Forgotten if some of it is gone."""
        query, sharer = self.query(publication), self.sharers.find(publication)
        first = sharer.first
        if since < sharer.since:
            raise Forgotten(
                f"{publication} goes on from {sharer.since}: what was before was said elsewhere"
            )
        if first is not None and since <= first:
            content = self.sharers.content(publication, list(shape_of(query).columns))
            yield Piece(since, first + 1, content)
            since = first + 1
        yield from pieces(self._site.engine, query, since)

    def promise_all(self, publication: str, instant: int) -> None:
        """As `promise`, for all that a publication is made of; what has its home elsewhere is to be
        promised there."""
        for stream in shape_of(self.query(publication)).streams:
            here = self._site.stream(stream.name)
            if is_mirror(here):
                known = self.demanded.get(here.name, BEGINNING)
                self.demanded[here.name] = max(known, instant)
            else:
                self.promise(labels_of(here) or here.name, instant)

    def promise(self, stream: str, instant: int) -> bool:
        """A reader is held up: if the stream is silent, nothing below the instant will come."""
        found = self._site.stream(stream)
        feed = self._site.feeds.find(found.name)
        inputs = self._site.engine.store.inputs
        partitions = inputs.partitions_of(found.name)
        if feed is None or instant >= FOREVER:
            return False
        landing = self._site.engine.landing
        silent = [p for p in partitions or [0] if found.is_table or feed.is_idle(p)]
        for partition in silent:
            landing.heartbeat(found, instant, partition=partition)
        if silent:
            self._site.ticker.wake()
        return bool(silent)


def pieces(engine: SharedEngine, query: QueryDef, since: int) -> Iterator[Piece]:
    """What a query has said from an instant on, without a gap, up to its frontier."""
    reader = Reader(engine, query.name, lambda: shape_of(query).columns)
    frontier = reader.frontier()
    if frontier.instant <= since:
        return
    after = START if since <= BEGINNING else Position(frontier.run, since)
    reader.check(after)
    for page in reader.pages(after, frontier):
        emission = page.emission
        rows = emission.rows.rename({name(i): c for i, c in enumerate(emission.columns)})
        yield Piece(since, emission.upto, rows)
        since = emission.upto
    if since < frontier.instant:
        yield Piece(since, frontier.instant, no_rows(query))


def no_rows(query: QueryDef) -> pl.DataFrame:
    columns = {f.name: dtype(f.type) for f in shape_of(query).schema}
    return pl.DataFrame(schema={TS: pl.Int64, OP: pl.Int8, **columns})


def needs_of(site: Site, stream: str, demanded: int = BEGINNING) -> tuple[int, int | None]:
    """Of a stream that a site reads from elsewhere: from when on its rows are needed, and the
    instant for which some query waits because of it, here or (`demanded`) at another node."""
    engine = site.engine
    needed_from = engine.store.inputs.complete_from(stream, ())
    # Sources ask this while others register and tick: what they change is only copied here.
    streams, cuts = dict(engine.streams), dict[str, list[int]]()
    for (each, _), cut in engine.store.inputs.cuts().items():
        cuts.setdefault(each, []).append(cut)
    marks = {each: watermark(of, cuts.get(each, [])) for each, of in streams.items()}
    held_up = demanded
    for flow in engine.ticks.last_flows:
        if stream in flow.streams and marks.keys() >= set(flow.streams):
            others = [s for s in flow.streams if s != stream and not streams[s].is_table]
            held_up = max(held_up, min((marks[s] for s in others), default=BEGINNING))
    waits = marks.get(stream, BEGINNING) < held_up < FOREVER
    return needed_from, held_up if waits else None


def publication_text(
    stream: StreamDef,
    publication: str,
    reach: int | None,
    where: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
) -> str:
    head = f"CREATE QUERY {_quoted(publication)} AS SELECT"
    tail = "" if where is None else f" WHERE {' OR '.join(f'({w})' for w in where)}"
    own = [f.name for f in stream.fields if columns is None or f.name in columns]
    if stream.is_relation:
        return f"{head} {_listed(own)} FROM {_quoted(stream.name)}{tail}"
    # Places come first: they order the rows, and no other column is looked at for that.
    listed = _listed([*(f.name for f in PLACE), *own])
    source = f"{_quoted(stream.name)} {_window(stream, reach)} WITH POSITION"
    return f"{head} ISTREAM {listed} FROM {source}{tail}"


def _listed(columns: Sequence[str]) -> str:
    return ", ".join(map(_quoted, columns))


def _window(stream: StreamDef, reach: int | None) -> str:
    if reach is None:
        return "[Unbounded]"
    if stream.timestamp_type.is_integer:
        return f"[Range {reach}]"
    return f"[Range {reach * stream.resolution_us} MICROSECONDS]"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
