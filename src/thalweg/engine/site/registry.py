"""What is registered: scripts come in whole or not at all, and stand again after a restart."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from thalweg.engine.failures import FAILURES, will_pass
from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.sinks.base import Sink
from thalweg.engine.site import source_folders
from thalweg.engine.site.book import Book, script_of
from thalweg.engine.site.feeds import Feeds
from thalweg.engine.site.outlet import SiteOutlet
from thalweg.engine.site.scripts import Change, CompileEach, Compiler, Script, Text
from thalweg.engine.site.tick_gate import TickGate
from thalweg.engine.sources.feed import Source
from thalweg.engine.sources.registry import is_pushed
from thalweg.plan.catalog import Catalog, Definition, QueryDef, StreamDef
from thalweg.plan.nodes import Node
from thalweg.plan.shapes import Shape, shape_of

log = logging.getLogger(__name__)

OpenSource = Callable[[StreamDef, Path], Source]
OpenSink = Callable[[str, Path], Sink]  # by a text such as jsonl:FILE
_NAME = "<catalog>"
PARCEL = 1_000  # queries that are registered again at once


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
        open_sink: OpenSink,
        base_folder: Path,
    ) -> None:
        self.catalog = Catalog()
        self._engine, self._book, self._outlet, self._feeds = engine, book, outlet, feeds
        self._gate = gate
        self._compiler, self._open_source, self._open_sink = compiler, open_source, open_sink
        self._base_folder = base_folder
        self._shapes: dict[Shape, Shape] = {}  # each once: many queries have the same
        self._readable: tuple[Catalog, Catalog] | None = None  # a catalog, and it without queries

    def restore(self) -> None:
        """The catalog as it was; queries go on where they were, sources where they stopped."""
        parked = self._book.parked()
        with _without_collections():
            self._restore_definitions(parked)
        open_sink = self._open_sink
        self._engine.adopt_relations()
        source_folders.sweep(self._engine.store, (s.name for s in self.catalog.streams()))
        for query, name, target, folder in self._book.working_sinks():
            if query not in parked:
                self._attach_again(query, name, lambda t=target, f=folder: open_sink(t, Path(f)))
        self._begin_feeds(self.catalog.streams())

    def _attach_again(self, query: str, name: str, make: Callable[[], Sink]) -> None:
        """A sink that can't be opened keeps nobody from starting: it is waited for, or given up."""
        try:
            self._outlet.attach(query, name, make())
        except FAILURES as error:
            log.error("%s of query %s can't be opened: %s", name, query, error)
            if will_pass(error):
                self._outlet.attach_later(query, name, make)
            else:
                self._book.fail_sink(query, name, f"{type(error).__name__}: {error}")

    def _restore_definitions(self, parked: Container[str]) -> None:
        """From the texts, in parcels: the plans of all queries at once would take much space."""
        others = script_of(self._book.other_texts())
        self.catalog = self._compiler(others, Catalog(), name=_NAME).catalog
        self._register(self.catalog.definitions.values())
        for texts in self._book.query_texts(PARCEL):
            script = self._compiler(script_of(texts), self.catalog, name=_NAME)
            self._register(q for q in script.queries if q.name not in parked)
            self._settle(script.catalog, script.queries)

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
        catalog = self.catalog
        if self._readable is None or self._readable[0] is not catalog:
            named = {k: d for k, d in catalog.definitions.items() if not isinstance(d, QueryDef)}
            self._readable = catalog, Catalog(named)
        return self._compiler(query.text, self._readable[1], name=_NAME).queries[0].plan

    def execute(self, text: str, name: str, folder: Path | None) -> Script:
        """Compile, write down in one transaction, apply. Any failure leaves all as it was."""
        with self._gate.between_ticks(), _without_collections():
            script = self._compiler(text, self.catalog, name=name)
            self._apply([script], [Text(text, folder)])
            return script

    def execute_each(self, texts: Sequence[Text], compiler: CompileEach) -> Sequence[Script]:
        """As `execute`, for all statements in which the compiler finds no mistake."""
        with self._gate.between_ticks(), _without_collections():
            scripts = compiler([t.cql for t in texts], self.catalog)
            self._apply(scripts, texts)
            return scripts

    def _apply(self, scripts: Sequence[Script], texts: Sequence[Text]) -> None:
        """What scripts that were compiled one after the other change."""
        if not scripts:
            return
        catalog = scripts[-1].catalog
        changes = [c for script in scripts for c in script.changes]
        created = _standing(changes, catalog)
        folders = _folders(scripts, texts)
        for definition in created:
            if isinstance(definition, StreamDef) and not is_pushed(definition):
                folder = folders.get(definition.name) or self._base_folder
                self._open_source(definition, folder)  # raises SourceError
        dropped = [c.definition for c in changes if c.dropped]
        # First of all, so that nothing lands behind the purge.
        halted = [d for d in dropped if isinstance(d, StreamDef) and d.name in self._feeds]
        for stream in halted:
            self._feeds.remove(stream.name)
        before = self._engine.standing()
        try:
            with self._engine.store.transaction():
                for script, text in zip(scripts, texts, strict=True):
                    self._write(script, text)
                for definition in dropped:
                    self._unregister(definition)
                self._register(created)
                for definition in created:
                    if isinstance(definition, StreamDef):
                        source_folders.begin(self._engine.store, definition.name)
        except BaseException:
            # The transaction took back what was written; take back what was done.
            self._engine.restore(before)
            self._begin_feeds(halted)
            raise
        self._settle(catalog, [d for d in created if isinstance(d, QueryDef)])
        if halted:
            source_folders.sweep(self._engine.store, (s.name for s in catalog.streams()))
        self._begin_feeds([d for d in created if isinstance(d, StreamDef)])

    def _write(self, script: Script, text: Text) -> None:
        where = str(text.folder.resolve()) if text.folder is not None else None
        fresh: list[tuple[Definition, str, str | None]] = []
        for statement, change in zip(script.statements, script.changes, strict=True):
            if change.dropped:
                self._book.define(fresh)  # in order: it may be one of these
                fresh = []
                self._book.undefine(change.definition)
            else:
                start, end = statement.span
                is_stream = isinstance(change.definition, StreamDef)
                where_it_starts = where if is_stream else None
                fresh.append((change.definition, text.cql[start:end], where_it_starts))
        self._book.define(fresh)

    def _register(self, definitions: Iterable[Definition]) -> None:
        queries = []
        for definition in definitions:
            if isinstance(definition, StreamDef):
                self._engine.add_stream(definition)
            elif isinstance(definition, QueryDef):
                queries.append(definition)
        self._engine.add_queries(queries)

    def _unregister(self, definition: Definition) -> None:
        if isinstance(definition, QueryDef):
            self._outlet.forget(definition.name)
            self._engine.drop_query(definition.name)
        elif isinstance(definition, StreamDef):
            self._engine.drop_stream(definition.name)
            source_folders.end(self._engine.store, definition.name)

    def _begin_feeds(self, streams: Iterable[StreamDef]) -> None:
        for stream in streams:
            self._begin_feed(stream)

    def _begin_feed(self, stream: StreamDef) -> None:
        folder = Path(self._book.folder_of(stream.name) or self._base_folder)
        opener = None if is_pushed(stream) else lambda: self._open_source(stream, folder)
        self._feeds.add(stream, opener)


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


def _standing(changes: Iterable[Change], catalog: Catalog) -> list[Definition]:
    """What was created and not dropped again."""
    made = (c.definition for c in changes if not c.dropped)
    return [d for d in made if catalog.find(d.name) is d]


def _folders(scripts: Sequence[Script], texts: Sequence[Text]) -> dict[str, Path]:
    """Where the paths of streams start that say so."""
    return {
        change.definition.name: text.folder
        for script, text in zip(scripts, texts, strict=True)
        for change in script.changes
        if text.folder is not None and isinstance(change.definition, StreamDef)
    }
