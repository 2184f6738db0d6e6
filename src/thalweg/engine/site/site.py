"""One running site. Everything that people touch goes through this object.

site = open_site(Path("data"), compile_script)
site.execute("CREATE STREAM …; CREATE QUERY hot AS SELECT …")
site.push("S", frame)
for page in site.results("hot"): ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import polars as pl
from prometheus_client import CollectorRegistry

from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.ingest.arriving import Receipt
from thalweg.engine.shared.ingest.batch_ids import is_known
from thalweg.engine.shared.registering import Past
from thalweg.engine.shared.results.present import frontier_of
from thalweg.engine.shared.tick.executors import Executor
from thalweg.engine.shared.tick.shaping.policy import ALWAYS_MJOIN
from thalweg.engine.sinks.base import Sink
from thalweg.engine.sinks.registry import open_sink
from thalweg.engine.site.backup import pack, staged, sweep
from thalweg.engine.site.book import Book, kind_of
from thalweg.engine.site.changes import Changes
from thalweg.engine.site.delays import Delays
from thalweg.engine.site.errors import SiteError, Unknown, WrongUse
from thalweg.engine.site.explaining import explain
from thalweg.engine.site.explaining_groups import explain_group, explain_groups, explain_why
from thalweg.engine.site.explanation import Explanation
from thalweg.engine.site.feeds import Feeds, SiteFeed
from thalweg.engine.site.following import follow_pages
from thalweg.engine.site.history import Notice, notices
from thalweg.engine.site.listeners import Listeners
from thalweg.engine.site.lock import FolderLock
from thalweg.engine.site.metrics import SiteMetrics
from thalweg.engine.site.now import Content, content_of, select
from thalweg.engine.site.outlet import SiteOutlet
from thalweg.engine.site.positions import START, Position
from thalweg.engine.site.reading import Page, Reader
from thalweg.engine.site.registry import NO_PASTS, OpenSource, Registry, Within
from thalweg.engine.site.scripts import Compiled, CompileEach, Compiler, Script, Text
from thalweg.engine.site.settings import SiteSettings
from thalweg.engine.site.sinks import OpenSink, Sinks
from thalweg.engine.site.status import Health, QueryStatus, StreamStatus, instant_text
from thalweg.engine.site.status_collector import StatusCollector
from thalweg.engine.site.tick_gate import TickGate
from thalweg.engine.site.ticker import Ticked, Ticker
from thalweg.engine.site.writing import fed_elsewhere, finished
from thalweg.engine.sources.feed import Source
from thalweg.plan.catalog import Catalog, QueryDef, SinkDef, StreamDef
from thalweg.plan.shapes import shape_of
from thalweg.plan.windows import FOREVER


def _open_sink(target: str, folder: Path, options: Mapping[str, str]) -> Sink:
    return open_sink(target, folder, options=options)


class Site:
    """Catalog, sources, ticks, results and sinks of one data directory.

    All methods may be called from any thread.
    """

    def __init__(
        self,
        folder: Path,
        compiler: Compiler,
        executor: Executor,
        *,
        open_source: OpenSource,
        open_sink: OpenSink = _open_sink,
        settings: SiteSettings | None = None,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        self.settings = settings or SiteSettings()
        self.compiler = compiler
        self._lock = FolderLock(folder)
        self.engine = SharedEngine(
            folder,
            executor,
            durable=self.settings.durable,
            objects=self.settings.store,
            retained_ticks=self.settings.retained_ticks,
            shapes=None if self.settings.intermediates else ALWAYS_MJOIN,
        )
        self.gate = TickGate(self.engine)
        self.book = Book(self.engine.store)
        self.outlet = SiteOutlet(self.engine.store)
        self.engine.outlet = self.outlet
        self.feeds = Feeds(self.engine, self._landed, self.settings.largest_backlog)
        self.ticker = Ticker(
            self.engine,
            self.feeds,
            self.outlet,
            self.book,
            self.gate,
            rows=self.settings.tick_rows,
            interval_s=self.settings.tick_interval_s,
            committed=self._ticked,
            parked=self._parked,
        )
        self.changes = Changes(lambda query: frontier_of(self.engine, query))
        self.lost: dict[str, str] = {}  # by stream: from when on, and why, nothing can come
        self.delays = Delays(self._reads)
        self.status = StatusCollector(self)
        self._measured = SiteMetrics(self)
        self.sinks = Sinks(self.book, self.outlet, open_sink)
        self.registry = Registry(
            self.engine,
            self.book,
            self.outlet,
            self.feeds,
            self.gate,
            compiler=compiler,
            open_source=open_source,
            sinks=self.sinks,
            base_folder=self.settings.base_folder,
        )
        self.listeners = Listeners()
        self._on_close = on_close
        self._closed = False
        self.engine.landing.sweep()
        sweep(folder)
        try:
            self.registry.restore()
        except BaseException:
            self._release()
            raise
        self.metrics = CollectorRegistry()
        self.metrics.register(self._measured)
        self.ticker.start()

    def close(self) -> None:
        """Stop sources, let the tick that runs come to its end, close the book."""
        if self._closed:
            return
        self._closed = True
        self.feeds.close()
        self.ticker.stop()
        self._tell()
        self._release()

    def _release(self) -> None:
        self.feeds.close()
        self.outlet.close()
        self.engine.close()
        self._on_close()
        self._lock.release()

    # --- definitions

    @property
    def catalog(self) -> Catalog:
        return self.registry.catalog

    def execute(
        self,
        text: str,
        *,
        name: str = "<cql>",
        folder: Path | None = None,
        pasts: Mapping[str, Past] = NO_PASTS,
        within: Within | None = None,
    ) -> Script:
        """Run a script: all of it, or, if it has a mistake, nothing.

        `folder` is where relative paths in it start; the site's own folder if none is given.
        `pasts` are those of streams in it that have begun at another node; `within` is done in the
        same transaction.
        """
        script = self.registry.execute(text, name, folder, pasts, within)
        self.ticker.wake()
        self._tell()
        return script

    def execute_each(
        self,
        texts: Sequence[Text],
        compiler: CompileEach,
        pasts: Mapping[str, Past] = NO_PASTS,
    ) -> Sequence[Script]:
        """Run the statements of texts, in order and in one transaction, but for those in which the
        compiler finds a mistake. If there is something else wrong with one of them, nothing is
        run."""
        scripts = self.registry.execute_each(texts, compiler, pasts)
        self.ticker.wake()
        self._tell()
        return scripts

    def change(self, make: Compiled) -> None:
        """Apply scripts that are made of the catalog as it is, in one transaction."""
        self.registry.change(make)
        self.ticker.wake()
        self._tell()

    def stop(self, query: str) -> None:
        """Drop a query: its results, state and sinks go with it."""
        self._drop("QUERY", self.query(query).name)

    def drop_stream(self, stream: str) -> None:
        """Drop a stream or relation that nothing uses, with all its tuples."""
        found = self.stream(stream)
        self._drop(kind_of(found).upper(), found.name)

    def _drop(self, kind: str, name: str) -> None:
        quoted = name.replace('"', '""')
        self.execute(f'DROP {kind} "{quoted}"')

    def query(self, name: str) -> QueryDef:
        found = self.catalog.find(name)
        if not isinstance(found, QueryDef):
            raise Unknown("query", name, [q.name for q in self.catalog.queries()])
        return found

    def stream(self, name: str) -> StreamDef:
        found = self.catalog.find(name)
        if not isinstance(found, StreamDef):
            raise Unknown("stream", name, [s.name for s in self.catalog.streams()])
        return found

    # --- input

    def push(
        self,
        stream: str,
        batch: pl.DataFrame,
        *,
        partition: int = 0,
        batch_id: str | None = None,
        patience_s: float | None = None,
    ) -> Receipt:
        """Hand in tuples; durable when it returns. A batch id that was seen before counts once.

        Waits while the engine is behind; with `patience_s` no longer than that, then Busy.
        """
        feed = self._open_feed(stream)
        self._check_unfinished(feed.stream, batch_id)
        return feed.push(batch, partition=partition, batch_id=batch_id, patience_s=patience_s)

    def _check_unfinished(self, stream: StreamDef, batch_id: str | None) -> None:
        store = self.engine.store
        if store.inputs.floor(stream.name) < FOREVER:
            return
        if batch_id is None or not is_known(store, stream.name, batch_id):
            raise finished(stream)

    def heartbeat(self, stream: str, instant: int, *, partition: int = 0) -> None:
        """Promise that no tuple below this instant will come."""
        self._open_feed(stream).heartbeat(instant, partition=partition)

    def finish(self, stream: str) -> None:
        """Promise that no tuple will come any more."""
        self._open_feed(stream).finish()

    def feed(self, stream: str, source: Source) -> None:
        """Let a source of this process feed a stream that has no other."""
        self._open_feed(stream).begin(lambda: source)

    def settle(self, timeout_s: float = 60.0) -> None:
        """Wait until all that was pushed has been ticked over."""
        if not self.ticker.wait_until_resting(timeout_s):
            reason = self.ticker.error or "it is still at work"
            raise SiteError(f"the engine has not come to rest in {timeout_s:g} s: {reason}")

    # --- output

    def results(
        self,
        query: str,
        after: Position = START,
        *,
        follow: bool = False,
        timeout_s: float | None = None,
    ) -> Iterator[Page]:
        """What the query has said behind a position, tick by tick; `follow` waits for more, for
        as long as the query stands (or `timeout_s` long without a row)."""
        found = self.query(query)
        reader = self.reader(found)
        reader.check(after)
        if not follow:
            return reader.pages(after)
        return follow_pages(reader, self.changes, after, lambda: self.ending(reader), timeout_s)

    def reader(self, query: QueryDef) -> Reader:
        """Reads what the query has said."""
        if query.reason is not None and not self.engine.can_read(query.name):
            raise WrongUse(
                f"{query.name} is parked, and its rows can't be told: {query.reason}. "
                "Open the data directory with the version that wrote it to read them."
            )
        return Reader(self.engine, query.name, lambda: self._columns(query))

    def _columns(self, query: QueryDef) -> tuple[str, ...]:
        found = self.catalog.find(query.name)
        return shape_of(found if isinstance(found, QueryDef) else query).columns

    def tail(self, query: str, rows: int) -> list[Page]:
        """The query's last rows."""
        return self.reader(self.query(query)).tail(rows)

    def content(self, query: str) -> Content:
        """What the query's result holds at the last instant that is final for it."""
        return content_of(self, self.query(query))

    def select(self, text: str) -> Content:
        """The answer to one SELECT over results, relations and windows, as of the last instant that
        is final for all that it reads."""
        return select(self, text)

    def complete_from(self, query: str) -> str | None:
        """The instant from which all that the query has said can be read; None: from its start."""
        found = self.query(query)
        since = self.engine.archive.complete_from(found.name)
        stream = shape_of(found).streams[0]
        return instant_text(since, stream.resolution_us, stream.timestamp_type.is_temporal)

    def lacking(self, query: str) -> dict[str, Any]:
        """What is missing in a query's results, for whoever reads them: here never anything."""
        return {}

    def ending(self, reader: Reader) -> str | None:
        """Why nothing will follow what the reader's query has said, if that is so."""
        if self._closed:
            return "closed"
        found = self.catalog.find(reader.query)
        if not isinstance(found, QueryDef) or not reader.stands:
            return "stopped"
        state = self.status.state(found)
        return state if state in ("finished", "parked") else None

    def attach(self, query: str, name: str, sink: Sink) -> None:
        """Let a sink of this process take what the query says from the next tick on."""
        found = self.query(query)
        with self.gate.between_ticks():
            self.outlet.attach(found.name, name, sink)
            self.engine.resubscribe()

    def detach(self, query: str, name: str) -> None:
        """Close a sink, for good."""
        found = self.query(query)
        with self.gate.between_ticks(), self.engine.store.transaction():
            self.sinks.remove(found.name, name)
            self.engine.resubscribe()

    def write_to(
        self,
        query: str,
        target: str,
        folder: Path | None = None,
        options: Mapping[str, str] | None = None,
    ) -> str:
        """Write what the query says from the next tick on to `jsonl:FILE`, `parquet:FOLDER` or
        another sink (`sinks.registry`), and go on with it after every restart; gives the sink's
        name. Relative paths start at `folder`. One that was given up there goes on behind the last
        rows that it committed. CREATE SINK does the same, with a name."""
        found = self.query(query)
        base = (folder or self.settings.base_folder).resolve()
        with self.gate.between_ticks(), self.engine.store.transaction():
            given = {k.lower(): v for k, v in (options or {}).items()}
            name = self.sinks.resumed(found.name, target, base, given)
            if name is None:
                name = self.sinks.free_name(found.name)
                sink = SinkDef(name, found.name, target, tuple(given.items()))
                self.sinks.add(sink, found, base)
            self.engine.resubscribe()
        return name

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call the listener, on any thread, after every tick and every change of the catalog, and
        when the site closes; gives how to stop it."""
        return self.listeners.listen(listener)

    def back_up(self, target: Path) -> None:
        """Write all that is durable to one file. Ticks wait only until its files are linked."""
        with ExitStack() as held:
            with self.gate.between_ticks():
                stage = held.enter_context(staged(self.engine.store))
            pack(stage, target)

    # --- what is going on

    def notices(self, queries: Iterable[QueryDef]) -> list[Notice]:
        """Which of these queries began with less than their windows ask for."""
        return notices(self, queries)

    def queries(self) -> list[QueryStatus]:
        return self.status.queries()

    def streams(self) -> list[StreamStatus]:
        return self.status.streams()

    def health(self) -> Health:
        return self.status.health()

    def explain(self, what: str, form: str = "logical") -> Explanation:
        """How a standing query, or the queries of a text, are computed."""
        return explain(self, what, form)

    def explain_groups(self) -> Explanation:
        """Who is answered together, by what, and what that saves."""
        return explain_groups(self.status.groups())

    def explain_group(self, name: str) -> Explanation:
        return explain_group(self.status.group(name))

    def explain_why(self, a: str, b: str) -> Explanation:
        """Why two standing queries share work, or do not."""
        return explain_why(self, self.query(a), self.query(b))

    # --- inside

    def _open_feed(self, stream: str) -> SiteFeed:
        found = self.stream(stream)
        feed = self.feeds.find(found.name)
        if feed is None:
            raise SiteError(f"{found.name} is being made or dropped: try again")
        if feed.thread is not None:
            raise fed_elsewhere(found)
        return feed

    def _landed(self) -> None:
        self.ticker.landed()

    def _reads(self, run: str) -> tuple[str, ...]:
        found = self.engine.roster.runs.get(run)
        return () if found is None else found.streams

    def _ticked(self, done: Ticked) -> None:
        # What a query has to be computed for does not depend on who else uses the processor.
        work = {run: s * done.tick.on_cpu for run, s in done.tick.by_query.items()}
        self.delays.ticked(done.delay_s, work)
        self.status.ticked(done)
        self._measured.ticked(done)
        self.changes.ticked()
        self.listeners.tell()

    def _parked(self, errors: Mapping[str, str]) -> None:
        for name, error in errors.items():
            query = self.catalog.find(name)
            if isinstance(query, QueryDef):
                query.reason = error

    def _tell(self) -> None:
        """Let readers and listeners look again."""
        self.changes.tell()
        self.listeners.tell()
