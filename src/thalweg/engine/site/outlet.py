"""Out of the engine: every query's sinks, and how many rows each query has said."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from thalweg.engine.failures import FAILURES, will_pass
from thalweg.engine.shared.results.emission import Emission, TickOutput
from thalweg.engine.shared.state.store import Store
from thalweg.engine.sinks.base import Key, Sink, SinkOutlet, open_where_it_was
from thalweg.plan.catalog import QueryDef


class SinkFailed(RuntimeError):
    """A sink that could not take a tick's rows."""

    def __init__(self, query: str, sink: str, cause: BaseException) -> None:
        self.reason = f"{type(cause).__name__}: {cause}"
        super().__init__(f"{sink} of query {query}: {self.reason}")
        self.query, self.sink = query, sink
        self.will_pass = will_pass(cause)


class _Named:
    """A sink whose failures say whose they are."""

    def __init__(self, query: str, name: str, sink: Sink) -> None:
        self._query, self._name, self._sink = query, name, sink
        self.close = sink.close
        self.rest = getattr(sink, "rest", lambda: False)
        self.finish = getattr(sink, "finish", lambda: False)
        self.has_fixed_columns = getattr(sink, "has_fixed_columns", False)
        self.check_query = getattr(sink, "check_query", lambda _: None)

    def open(self, committed: bytes | None) -> None:
        with self._failing():
            self._sink.open(committed)

    def write(self, emission: Emission) -> None:
        with self._failing():
            self._sink.write(emission)

    def progress(self) -> bytes:
        with self._failing():
            return self._sink.progress()

    @contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except FAILURES as cause:
            raise SinkFailed(self._query, self._name, cause) from cause


class SiteOutlet:
    """The engine's outlet. Rows count, and sinks move on, only with the tick's commit."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._sinks = SinkOutlet()
        self._absent: dict[Key, Callable[[], Sink]] = {}
        self._rows: dict[str, int] = {}
        self._fresh: dict[str, int] = {}

    # --- sinks

    def attach(self, query: str, name: str, sink: Sink) -> None:
        """From the next tick on; a sink that was attached before goes on where it was."""
        open_where_it_was(self._store, query, name, sink)
        self._sinks.attach(query, name, _Named(query, name, sink))

    def attach_later(self, query: str, name: str, make: Callable[[], Sink]) -> None:
        """A sink that can't be opened now, and is waited for by the next tick."""
        self._absent[query, name] = make

    def has(self, query: str, name: str) -> bool:
        return self._sinks.has(query, name)

    def detach(self, query: str, name: str | None = None) -> None:
        """Close one sink of a query, or all of them."""
        for key in [k for k in self._absent if k[0] == query and name in (None, k[1])]:
            del self._absent[key]
        self._sinks.detach(query, name)

    def give_up(self, query: str, name: str) -> None:
        """Close a sink for good, with nothing in it that was not committed."""
        self._absent.pop((query, name), None)
        self._sinks.cut_back(query, name)
        self._sinks.detach(query, name)

    def forget(self, query: str) -> None:
        """The query is gone."""
        self.detach(query)
        self._rows.pop(query, None)

    def rest(self) -> None:
        """Nothing comes: what has waited long enough for a file gets it."""
        if self._sinks.rest():
            self._sinks.write_progress(self._store)

    def close(self) -> None:
        try:
            if self._sinks.finish():
                self._sinks.write_progress(self._store)
        finally:
            self._sinks.close()

    def fixed_sinks(self, query: str) -> list[str]:
        """Of a query, those that can't take other columns."""
        return self._sinks.fixed(query)

    def check(self, query: QueryDef) -> None:
        """Whether the sinks of that name's query would take this one. Raises SinkError."""
        self._sinks.check(query)

    # --- what the engine calls

    def wants(self, query: str) -> bool:
        return self._sinks.wants(query) or any(q == query for q, _ in list(self._absent))

    def deliver(self, output: TickOutput) -> None:
        for (query, name), make in list(self._absent.items()):
            try:
                self.attach(query, name, make())
            except FAILURES as cause:
                raise SinkFailed(query, name, cause) from cause
            del self._absent[query, name]
        self._fresh = {}
        for emission in output.each():
            self._fresh[emission.query] = self._fresh.get(emission.query, 0) + emission.height
            # Known before the tick is a fact: whoever asks in between would count its rows twice.
            self.rows_of(emission.query)
        self._sinks.deliver(output)

    def write_progress(self, store: Store) -> None:
        store.outputs.count_rows(self._fresh)
        self._sinks.write_progress(store)

    def committed(self) -> dict[str, int]:
        """The tick is a fact: rows by query."""
        fresh, self._fresh = self._fresh, {}
        for query, rows in fresh.items():
            if query in self._rows:  # else it has gone meanwhile
                self._rows[query] += rows
        return fresh

    def rows_of(self, query: str) -> int:
        """How many rows the query has said since it was submitted."""
        if query not in self._rows:
            return self._rows.setdefault(query, self._store.outputs.row_count(query))
        return self._rows[query]
