"""What is registered: scripts come in whole or not at all, and stand again after a restart."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.registering import Past
from thalweg.engine.shared.replacing import CannotReplace, can_be_told
from thalweg.engine.sinks.base import SinkError
from thalweg.engine.site import source_folders
from thalweg.engine.site.authors import author_now, made_by
from thalweg.engine.site.book import SINK, Book, Parked, Statement
from thalweg.engine.site.feeds import Feeds
from thalweg.engine.site.outlet import SiteOutlet
from thalweg.engine.site.parking import park_unreadable, parked_now
from thalweg.engine.site.restoring import NAME, NO_SHAPE, registered, restored
from thalweg.engine.site.scripts import (
    Change,
    Compiled,
    CompileEach,
    Compiler,
    Script,
    Text,
)
from thalweg.engine.site.sinks import Sinks
from thalweg.engine.site.tick_gate import TickGate
from thalweg.engine.site.writing import write_rows
from thalweg.engine.sources.feed import Source
from thalweg.engine.sources.registry import is_pushed
from thalweg.plan.catalog import Catalog, Definition, QueryDef, SetAside, SinkDef, StreamDef
from thalweg.plan.nodes import Node
from thalweg.plan.shapes import Shape, shape_of

OpenSource = Callable[[StreamDef, Path], Source]
NO_PASTS: Mapping[str, Past] = {}
PARCEL = 1_000  # queries that are registered again at once


@dataclass(frozen=True, slots=True)
class Within:
    """What else belongs into the transaction of a script: before its definitions are registered,
    and behind that. If one of them raises, nothing is done."""

    before: Callable[[], None]
    after: Callable[[], None]


class Registry:
    """The catalog, and what must happen in the engine when it changes."""

    def __init__(
        self,
        engine: SharedEngine,
        book: Book,
        outlet: SiteOutlet,
        feeds: Feeds,
        gate: TickGate,
        *,
        compiler: Compiler,
        open_source: OpenSource,
        sinks: Sinks,
        base_folder: Path,
    ) -> None:
        self.catalog = Catalog()
        self._engine, self._book, self._outlet, self._feeds = engine, book, outlet, feeds
        self._gate = gate
        self._compiler, self._open_source, self._sinks = compiler, open_source, sinks
        self._base_folder = base_folder
        self._shapes: dict[Shape, Shape] = {}  # each once: many queries have the same
        self._readable: tuple[Catalog, Catalog] | None = None  # a catalog, and it without queries
        # Of queries that are older than the last added column: what they read. By lower-cased name.
        self._read_by: dict[str, Catalog] = {}

    def restore(self) -> None:
        """The catalog as it was; queries go on where they were, sources where they stopped."""
        with _without_collections():
            self._restore_definitions(parked_now(self._engine, self._book))
        self._engine.adopt_relations()
        source_folders.sweep(self._engine.store, self._stream_names(self.catalog))
        self._sinks.restore(self.catalog, self._book.parked())
        self._begin_feeds(self.catalog.streams())

    def _restore_definitions(self, parked: Mapping[str, Parked]) -> None:
        """From the texts, in parcels: the plans of all queries at once would take much space."""
        readable, queries = Catalog(), Catalog()
        with_shapes, failed = self._book.with_shapes(), dict[str, str]()
        for stage in self._book.stages():
            self._read_by.update(dict.fromkeys(queries.definitions, readable))
            readable = restored(self._compiler, stage.statements, readable).catalog
            self._register(readable.definitions.values())
            self.catalog = Catalog({**readable.definitions, **queries.definitions})
            for statements in self._book.queries_of(stage, PARCEL):
                found = restored(self._compiler, statements, self.catalog, self._unreadable)
                failed.update(found.failed)
                retired = self._engine.frozen.retired_at
                gone_on = [q for q in found.queries if retired(q.name) is not None]
                self._engine.keep_aside(gone_on)
                running = [q for q in found.queries if q.name not in parked and q not in gone_on]
                failed.update(registered(self._register, running))
                aside = [q for q in found.queries if q.name in parked]
                self._engine.keep_aside(aside)
                for query in aside:
                    query.reason = parked[query.name].error
                fresh = [q for q in found.queries if q.name not in with_shapes]
                self._book.write_shapes((q.name, q.shape or self._one_shape(q)) for q in fresh)
                self._settle(found.catalog, found.queries)
            queries = Catalog({q.name.lower(): q for q in self.catalog.queries()})
        sinks = self._book.sink_statements()
        self.catalog = restored(self._compiler, sinks, self.catalog).catalog
        park_unreadable(
            self._engine, self._book, {n: r for n, r in failed.items() if n not in parked}
        )

    def _unreadable(self, statement: Statement, reason: str) -> QueryDef:
        shape = self._book.shape(statement.name) or NO_SHAPE
        return QueryDef.unreadable(statement.name, statement.text, shape, reason, self._recompile)

    @staticmethod
    def _stream_names(catalog: Catalog) -> Iterator[str]:
        """Also of those that are set aside: what they have read stays."""
        yield from (s.name for s in catalog.streams())
        yield from (d.name for d in catalog.set_aside())

    def _settle(self, catalog: Catalog, fresh: Iterable[QueryDef]) -> None:
        """The catalog stands; its new queries are registered, and their plans can go."""
        self.catalog = catalog
        recompile = self._recompile  # one object for all
        for query in fresh:
            query.release_plan(query.shape or self._one_shape(query), recompile)

    def _one_shape(self, query: QueryDef) -> Shape:
        shape = shape_of(query)
        return self._shapes.setdefault(shape, shape)

    def _recompile(self, query: QueryDef) -> Node:
        readable = self._read_by.get(query.name.lower()) or self._readable_now()
        return self._compiler(query.text, readable, name=NAME).queries[0].plan

    def _readable_now(self) -> Catalog:
        """What queries can read."""
        catalog = self.catalog
        if self._readable is None or self._readable[0] is not catalog:
            self._readable = catalog, Catalog(_without_queries(catalog))
        return self._readable[1]

    def execute(
        self,
        text: str,
        name: str,
        folder: Path | None,
        pasts: Mapping[str, Past] = NO_PASTS,
        within: Within | None = None,
    ) -> Script:
        """Compile, write down in one transaction, apply. Any failure leaves all as it was.

        `pasts` are those of streams of the script that have begun elsewhere."""
        with self._gate.between_ticks(), _without_collections():
            script = self._compiler(text, self.catalog, name=name)
            self._apply([script], [Text(text, folder)], pasts, within)
            return script

    def execute_each(
        self,
        texts: Sequence[Text],
        compiler: CompileEach,
        pasts: Mapping[str, Past] = NO_PASTS,
    ) -> Sequence[Script]:
        """As `execute`, for all statements in which the compiler finds no mistake."""
        with self._gate.between_ticks(), _without_collections():
            scripts = compiler([t.cql for t in texts], self.catalog)
            self._apply(scripts, texts, pasts)
            return scripts

    def change(self, make: Compiled) -> None:
        """Apply scripts that are made of the catalog as it is now."""
        with self._gate.between_ticks(), _without_collections():
            self._apply(*make(self.catalog))

    def _apply(
        self,
        scripts: Sequence[Script],
        texts: Sequence[Text],
        pasts: Mapping[str, Past] = NO_PASTS,
        within: Within | None = None,
    ) -> None:
        """What scripts that were compiled one after the other change."""
        if not scripts:
            return
        author = author_now()
        if author is not None:
            author.check(scripts, self.catalog)
        changes = [c for script in scripts for c in script.changes]
        stuck = self._stuck(changes)
        changes = [c for c in changes if c.replaced not in stuck]
        catalog = _with(scripts[-1].catalog, stuck)
        work = _work(changes, self.catalog, catalog)
        folders = _folders(scripts, texts)
        for stream in (*work.streams, *work.altered):
            if not is_pushed(stream):
                folder = folders.get(stream.name) or self._folder_of(stream)
                self._open_source(stream, folder)  # raises SourceError
        for old, new in work.replaced:
            self._check_sinks(old, new)
        # First of all, so that nothing lands behind the purge, or without a column.
        halted = [
            d
            for d in (*work.dropped, *(c.replaced for c in changes if not c.dropped))
            if isinstance(d, StreamDef) and d.name in self._feeds
        ]
        for stream in halted:
            self._feeds.remove(stream.name)
        before, read_by = self._engine.definitions(), self._read_by.copy()
        opened: list[SinkDef] = []
        try:
            with self._engine.landing.exclusively(), self._engine.store.transaction():
                for script, text in zip(scripts, texts, strict=True):
                    self._write([c for c in script.changes if c.replaced not in stuck], text)
                if author is not None:
                    made = made_by(author, changes, self.catalog, catalog)
                    self._book.write_owners(made, author.name)
                for definition in work.dropped:
                    self._unregister(definition)
                self._alter(work)
                inputs = self._engine.store.inputs
                inputs.complete_only_from({s: p.complete_from for s, p in pasts.items()})
                inputs.complete_again_from(
                    {s: p.complete_from for s, p in pasts.items() if p.again}
                )
                if within is not None:
                    within.before()
                self._register([*work.streams, *work.queries], pasts)
                if within is not None:
                    within.after()
                self._engine.replace_queries(work.replaced)
                fresh = [*work.queries, *(new for _, new in work.replaced)]
                self._book.write_shapes((q.name, q.shape or self._one_shape(q)) for q in fresh)
                for stream in work.streams:
                    source_folders.begin(self._engine.store, stream.name)
                for sink in work.sinks:
                    opened.append(sink)
                    folder = (folders.get(sink.name) or self._base_folder).resolve()
                    self._sinks.add(sink, _query(catalog, sink), folder)
                self._engine.resubscribe()
                writes = [w for script in scripts for w in script.writes]
                changed = write_rows(self._engine, self._feeds, catalog, writes)
        except BaseException:
            # The transaction took back what was written; take back what was done.
            for sink in opened:
                self._sinks.take_back(sink.query, sink.name)
            self._sinks.restore(self.catalog, self._book.parked())
            self._engine.restore(before)
            self._read_by = read_by
            self._begin_feeds(halted)
            raise
        self._settle(catalog, fresh)
        if any(old.reason is not None for old, _ in work.replaced):
            self._sinks.restore(catalog, self._book.parked())  # they were closed with the query
            self._engine.resubscribe()
        if halted:
            source_folders.sweep(self._engine.store, self._stream_names(catalog))
        self._begin_feeds([*work.streams, *work.altered])
        for name in changed:
            self._feeds.arrived(name)

    def _check_sinks(self, old: QueryDef, new: QueryDef) -> None:
        try:
            self._outlet.check(new)
        except SinkError as error:
            raise CannotReplace(f"{error}; or drop sink {error.sink} first") from None
        if shape_of(old).columns == shape_of(new).columns:
            return
        fixed = self._outlet.fixed_sinks(old.name)
        for query, name, target, _ in self._book.sinks():
            if query == old.name and name in fixed:
                raise CannotReplace(
                    f"{target} can't take other columns, and {old.name} writes to it: "
                    f"drop sink {name} first"
                )

    def _alter(self, work: _Work) -> None:
        if work.altered:
            # Queries that stand go on without the new column, also after a restart.
            old = self._readable_now()
            for query in self.catalog.queries():
                self._read_by.setdefault(query.name.lower(), old)
        for stream in work.altered:
            self._engine.alter_stream(stream)
        for query in (*work.queries, *(new for _, new in work.replaced), *work.rewritten):
            self._read_by.pop(query.name.lower(), None)

    def _stuck(self, changes: Sequence[Change]) -> list[QueryDef]:
        """Parked queries that would come back with a view that is replaced, if it were known what
        they hold: they stay parked."""
        return [
            c.replaced
            for c in changes
            if isinstance(c.replaced, QueryDef)
            and c.replaced.reason is not None
            and c.text == c.replaced.text
            and not can_be_told(self._engine, c.replaced)
        ]

    def _write(self, changes: Sequence[Change], text: Text) -> None:
        where = str(text.folder.resolve()) if text.folder is not None else None
        fresh: list[tuple[Definition, str, str | None]] = []
        for change in changes:
            definition = change.definition
            if not change.dropped and change.replaced is None:
                has_paths = isinstance(definition, StreamDef | SinkDef)
                fresh.append((definition, change.text, where if has_paths else None))
                continue
            self._book.define(fresh)  # in order: it may be one of these
            fresh = []
            if change.dropped:
                self._book.undefine(definition)
            elif isinstance(definition, StreamDef):
                self._book.add_column(definition.name, change.text)
            elif isinstance(definition, SinkDef):
                self._book.undefine(definition)
                fresh.append((definition, change.text, where))
            else:
                self._book.redefine(definition, change.text)
        self._book.define(fresh)

    def _register(
        self, definitions: Iterable[Definition], pasts: Mapping[str, Past] = NO_PASTS
    ) -> None:
        queries = []
        for definition in definitions:
            if isinstance(definition, StreamDef):
                self._engine.add_stream(definition)
            elif isinstance(definition, QueryDef):
                queries.append(definition)
        self._engine.add_queries(queries, pasts=pasts)

    def _unregister(self, definition: Definition) -> None:
        if isinstance(definition, QueryDef):
            self._outlet.forget(definition.name)
            self._engine.drop_query(definition.name)
            self._read_by.pop(definition.name.lower(), None)
        elif isinstance(definition, StreamDef):
            self._engine.drop_stream(definition.name)
            source_folders.end(self._engine.store, definition.name)
        elif isinstance(definition, SinkDef):
            self._sinks.remove(definition.query, definition.name)
        elif isinstance(definition, SetAside):
            self._unregister_aside(definition)

    def _unregister_aside(self, definition: SetAside) -> None:
        if definition.kind == SINK:
            for sink in self._book.all_sinks():
                if sink.name == definition.name:
                    self._sinks.remove(sink.query, sink.name)
        elif definition.kind != "view":
            self._engine.drop_stream(definition.name)
            source_folders.end(self._engine.store, definition.name)

    def _begin_feeds(self, streams: Iterable[StreamDef]) -> None:
        for stream in streams:
            self._begin_feed(stream)

    def _begin_feed(self, stream: StreamDef) -> None:
        folder = self._folder_of(stream)
        opener = None if is_pushed(stream) else lambda: self._open_source(stream, folder)
        self._feeds.add(stream, opener)

    def _folder_of(self, stream: StreamDef) -> Path:
        """Where its paths start."""
        return Path(self._book.folder_of(stream.name) or self._base_folder)


@contextmanager
def _without_collections() -> Iterator[None]:
    """What is made here stays, or goes without the collector: looking for cycles in it, again and
    again while it grows, would take a fourth of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@dataclass(frozen=True, slots=True)
class _Work:
    """What changes come down to, from what stood before to what stands after them."""

    dropped: list[Definition]
    streams: list[StreamDef]  # new ones
    altered: list[StreamDef]
    queries: list[QueryDef]  # new ones
    replaced: list[tuple[QueryDef, QueryDef]]
    rewritten: list[QueryDef]  # the same, but over a view that is another
    sinks: list[SinkDef]  # new ones


def _work(changes: Sequence[Change], before: Catalog, after: Catalog) -> _Work:
    gone_sinks = (c.replaced for c in changes if isinstance(c.replaced, SinkDef))
    dropped = [*(c.definition for c in changes if c.dropped), *gone_sinks]
    work = _Work([d for d in dropped if before.find(d.name) is d], [], [], [], [], [], [])
    gone = {id(d) for d in work.dropped}
    made = {id(c.definition): c.definition for c in changes if not c.dropped}
    for definition in made.values():
        if after.find(definition.name) is not definition:
            continue  # dropped or replaced again
        there = before.find(definition.name)
        stood = there if there is not None and id(there) not in gone else None
        if isinstance(definition, SinkDef):
            work.sinks.append(definition)
        elif isinstance(definition, StreamDef):
            (work.streams if stood is None else work.altered).append(definition)
        elif isinstance(definition, QueryDef):
            if stood is definition:
                work.rewritten.append(definition)
            elif isinstance(stood, QueryDef):
                work.replaced.append((stood, definition))
            else:
                work.queries.append(definition)
    return work


def _query(catalog: Catalog, sink: SinkDef) -> QueryDef:
    found = catalog.find(sink.query)
    assert isinstance(found, QueryDef)  # the compiler has looked
    return found


def _with(catalog: Catalog, definitions: Sequence[Definition]) -> Catalog:
    for definition in definitions:
        catalog = catalog.with_definition(definition)
    return catalog


def _without_queries(catalog: Catalog) -> dict[str, Definition]:
    return {k: d for k, d in catalog.definitions.items() if not isinstance(d, QueryDef | SinkDef)}


def _folders(scripts: Sequence[Script], texts: Sequence[Text]) -> dict[str, Path]:
    """Where the paths of streams and sinks start that say so."""
    return {
        change.definition.name: text.folder
        for script, text in zip(scripts, texts, strict=True)
        for change in script.changes
        if text.folder is not None
        and (change.replaced is None or isinstance(change.definition, SinkDef))
        and isinstance(change.definition, StreamDef | SinkDef)
    }
