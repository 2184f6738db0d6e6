"""Sinks of a site: opened, attached and written down together; no two on one file or folder."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from pathlib import Path

from thalweg.engine.failures import FAILURES, will_pass
from thalweg.engine.sinks.base import Sink, SinkError, check_query
from thalweg.engine.sinks.registry import location
from thalweg.engine.site.book import Book, SinkRow
from thalweg.engine.site.outlet import SiteOutlet
from thalweg.plan.catalog import Catalog, QueryDef, SinkDef

log = logging.getLogger(__name__)

OpenSink = Callable[[str, Path, Mapping[str, str]], Sink]  # a text such as jsonl:FILE, and options


@dataclass(frozen=True, slots=True)
class Attached:
    """A sink that stands, or that was given up with an error."""

    name: str
    query: str
    target: str
    options: dict[str, str]
    folder: str | None
    error: str | None


class Sinks:
    def __init__(self, book: Book, outlet: SiteOutlet, open_sink: OpenSink) -> None:
        self._book, self._outlet, self._open = book, outlet, open_sink

    def free_name(self, query: str) -> str:
        taken = {s.name for s in self._book.all_sinks() if s.query == query}
        return next(n for i in itertools.count(1) if (n := f"sink-{i}") not in taken)

    def add(self, sink: SinkDef, query: QueryDef, folder: Path) -> None:
        """Open a new sink and write it down. The caller holds a transaction, and removes it again
        if that fails. Raises SinkError."""
        try:
            opened = self._open(sink.target, folder, dict(sink.options))
            self._check_alone(sink, folder)
            check_query(opened, sink.name, query)
            self._attach(sink, opened)
        except SinkError as error:
            error.sink = sink.name
            raise
        self._book.add_sink(sink.query, sink.name, sink.target, str(folder), dict(sink.options))

    def resumed(
        self, query: str, target: str, folder: Path, options: Mapping[str, str]
    ) -> str | None:
        """Bring a sink that was given up at this place back to life, behind the last rows that it
        committed, with the options that it had, if no others are given; gives its name, if there is
        one. Raises SinkError."""
        name = self._book.failed_sink(query, target, str(folder))
        if name is not None:
            known = options or self._book.sink_options().get((query, name), {})
            self._attach(SinkDef(name, query, target), self._open(target, folder, known))
            self._book.revive_sink(query, name)
            self._book.write_sink_options(query, name, known)
        return name

    def _attach(self, sink: SinkDef, opened: Sink) -> None:
        try:
            self._outlet.attach(sink.query, sink.name, opened)
        except OSError as error:
            raise SinkError(f"{sink.target} can't be written: {error.strerror or error}") from error

    def _check_alone(self, sink: SinkDef, folder: Path) -> None:
        mine = location(sink.target, folder)
        for other in self._book.all_sinks():
            if (other.query, other.name) == (sink.query, sink.name):
                raise SinkError(
                    f"{sink.query} already has a sink {sink.name}: choose another name, or drop it"
                )
            there = location(other.target, Path(other.folder)) if other.folder else None
            if mine is not None and mine == there:
                raise SinkError(
                    f"sink {other.name} of {other.query} writes to {mine}: "
                    "two would spoil it. Choose another place, or drop that one."
                )

    def remove(self, query: str, name: str) -> None:
        self._outlet.detach(query, name)
        self._book.remove_sink(query, name)

    def take_back(self, query: str, name: str) -> None:
        """A change was undone in the book: close what it has opened."""
        self._outlet.detach(query, name)

    def restore(self, catalog: Catalog, parked: Container[str]) -> None:
        """Those that stood, where they were."""
        written = self._book.sink_options()
        for sink in self._book.all_sinks():
            is_open = self._outlet.has(sink.query, sink.name)
            if (
                sink.error is None
                and sink.folder is not None
                and not is_open
                and sink.query not in parked
            ):
                options = _options(sink, catalog, written)
                self._attach_again(sink.query, sink.name, sink.target, Path(sink.folder), options)

    def _attach_again(
        self, query: str, name: str, target: str, folder: Path, options: dict[str, str]
    ) -> None:
        """A sink that can't be opened keeps nobody from starting: it is waited for, or given up."""

        def make() -> Sink:
            return self._open(target, folder, options)

        try:
            self._outlet.attach(query, name, make())
        except FAILURES as error:
            log.error("%s of query %s can't be opened: %s", name, query, error)
            if will_pass(error):
                self._outlet.attach_later(query, name, make)
            else:
                self._book.fail_sink(query, name, f"{type(error).__name__}: {error}")

    def all(self, catalog: Catalog) -> list[Attached]:
        found, written = [], self._book.sink_options()
        for sink in self._book.all_sinks():
            options = _options(sink, catalog, written)
            found.append(
                Attached(sink.name, sink.query, sink.target, options, sink.folder, sink.error)
            )
        return found


def _options(
    sink: SinkRow, catalog: Catalog, written: Mapping[tuple[str, str], dict[str, str]]
) -> dict[str, str]:
    named = catalog.find(sink.name)
    of_statement = dict(named.options) if isinstance(named, SinkDef) else {}
    return written.get((sink.query, sink.name), of_statement)
