"""What a sink is, and how sinks become the engine's outlet."""

from __future__ import annotations

from contextlib import suppress
from typing import Protocol

from thalweg.engine.failures import FAILURES
from thalweg.engine.shared.results.emission import Emission, TickOutput
from thalweg.engine.shared.state.outputs import EVERY_QUERY
from thalweg.engine.shared.state.store import Store
from thalweg.plan.catalog import QueryDef


class SinkError(ValueError):
    """A sink that can't be opened as asked, and what to do about it."""

    sink: str | None = None  # its name, where it has one


def check_query(sink: object, name: str, query: QueryDef) -> None:
    """Raises SinkError where a sink is choosy."""
    if hasattr(sink, "check_query"):
        try:
            sink.check_query(query)
        except SinkError as error:
            error.sink = name
            raise


class Sink(Protocol):
    """Takes the emissions of one query, tick by tick; one without rows only says how far its result
    is final.

    `progress` is committed with the tick: what it describes is durable when it returns. After a
    crash the sink is opened with what was committed last and drops whatever it has beyond that; the
    tick that was interrupted then comes again. `open(None)` is the very first time.
    """

    def open(self, committed: bytes | None) -> None: ...

    def write(self, emission: Emission) -> None: ...

    def progress(self) -> bytes: ...

    def close(self) -> None: ...


class ChoosySink(Protocol):
    """A sink that does not take every query."""

    def check_query(self, query: QueryDef) -> None:
        """Raises SinkError where it can't take what the query says."""


class WaitingSink(Protocol):
    """A sink that lets rows wait to write many at once. Both say whether they have written some, so
    that its progress has to be committed."""

    def rest(self) -> bool:
        """Nothing comes for a while."""

    def finish(self) -> bool:
        """Nothing comes any more for now."""


class BulkSink(Protocol):
    """Takes what all queries say, a tick at a time; otherwise a sink like any other.

    Members of a family come in one frame: what is written for thousands of queries costs as much as
    its rows, not as much as its queries.
    """

    def open(self, committed: bytes | None) -> None: ...

    def write_all(self, output: TickOutput) -> None: ...

    def progress(self) -> bytes: ...

    def close(self) -> None: ...


Key = tuple[str, str]  # of a sink: the query, or EVERY_QUERY; and a name


class SinkOutlet:
    """All sinks of all queries as one outlet."""

    def __init__(self) -> None:
        self._sinks: dict[Key, Sink | BulkSink] = {}
        self._of: dict[str, list[Sink]] = {}  # by query
        self._of_all: list[BulkSink] = []
        self._tick = 0  # the last one that was delivered
        self._before: dict[Key, bytes] = {}  # progress when its delivery began

    def attach(self, query: str, name: str, sink: Sink) -> None:
        """Take in a sink that is open; it gets the query's emissions from the next tick on."""
        self._sinks[query, name] = sink
        self._of.setdefault(query, []).append(sink)
        self._before[query, name] = sink.progress()

    def attach_all(self, name: str, sink: BulkSink) -> None:
        """Take in an open sink for every query, also for those that come later."""
        self._sinks[EVERY_QUERY, name] = sink
        self._of_all.append(sink)
        self._before[EVERY_QUERY, name] = sink.progress()

    def detach(self, query: str, name: str | None = None) -> None:
        """Close one sink of a query, or all of them."""
        for key in [k for k in self._sinks if k[0] == query and name in (None, k[1])]:
            self._of[query].remove(self._remove(key))  # type: ignore[arg-type]

    def detach_all(self, name: str) -> None:
        """Close a sink that takes every query."""
        self._of_all.remove(self._remove((EVERY_QUERY, name)))  # type: ignore[arg-type]

    def _remove(self, key: Key) -> Sink | BulkSink:
        self._before.pop(key)
        sink = self._sinks.pop(key)
        if hasattr(sink, "finish"):
            with suppress(Exception):  # it may be closed because it can't write
                sink.finish()
        sink.close()
        return sink

    def has(self, query: str, name: str) -> bool:
        return (query, name) in self._sinks

    def fixed(self, query: str) -> list[str]:
        """Sinks of a query that can't take other columns than they have."""
        return [
            name
            for (q, name), sink in self._sinks.items()
            if q == query and getattr(sink, "has_fixed_columns", False)
        ]

    def check(self, query: QueryDef) -> None:
        """Whether the sinks of that name's query would take this one. Raises SinkError."""
        for (of, name), sink in self._sinks.items():
            if of == query.name:
                check_query(sink, name, query)

    def wants(self, query: str) -> bool:
        return bool(self._of_all or self._of.get(query))

    def deliver(self, output: TickOutput) -> None:
        if not self._sinks:
            return
        if output.tick == self._tick:
            self._roll_back()
        else:
            self._tick = output.tick
            self._before = {key: sink.progress() for key, sink in self._sinks.items()}
        for bulk in self._of_all:
            bulk.write_all(output)
        if not any(self._of.values()):
            return  # nobody asks who of a family said what
        said: dict[str, list[Emission]] = {}
        for emission in output.each():
            if emission.query in self._of:
                said.setdefault(emission.query, []).append(emission)
        for query, sinks in self._of.items():
            if sinks:
                for emission in _with_frontier(said.get(query, []), output.quiet(query)):
                    for sink in sinks:
                        sink.write(emission)

    def _roll_back(self) -> None:
        """A tick comes again without a crash (a task or another sink failed in it)."""
        for key, sink in self._sinks.items():
            sink.close()
            sink.open(self._before[key])

    def cut_back(self, query: str, name: str) -> None:
        """Take back what a failed sink has got beyond the last committed tick, if that goes."""
        sink, before = self._sinks.get((query, name)), self._before.get((query, name))
        if sink is not None:
            with suppress(*FAILURES):
                sink.close()
                sink.open(before)

    def write_progress(self, store: Store) -> None:
        store.outputs.write_progress({key: sink.progress() for key, sink in self._sinks.items()})

    def rest(self) -> bool:
        """Between ticks: let sinks write what has waited; whether progress has to be written."""
        written = [s.rest() for s in self._sinks.values() if hasattr(s, "rest")]
        return any(written)

    def finish(self) -> bool:
        written = [s.finish() for s in self._sinks.values() if hasattr(s, "finish")]
        return any(written)

    def close(self) -> None:
        for query, name in list(self._sinks):
            if query == EVERY_QUERY:
                self.detach_all(name)
            else:
                self.detach(query, name)


def _with_frontier(said: list[Emission], quiet: Emission | None) -> list[Emission]:
    """What a query says in a tick; it moves on also where the version that stands says nothing."""
    if quiet is None or any(e.run == quiet.run for e in said):
        return said
    return [*said, quiet]


def open_where_it_was(store: Store, query: str, name: str, sink: Sink | BulkSink) -> None:
    """Open a sink where it left off, or for the first time, as the book says.

    A first opening is written down at once, so that what a crash leaves in the sink's file can be
    told from what was there before.
    """
    sink.open(store.outputs.progress(query, name))
    store.outputs.write_progress({(query, name): sink.progress()})
