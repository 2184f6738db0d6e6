"""What a sink is, and how sinks become the engine's outlet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from thalweg.engine.shared.results import Emission, FamilyEmission, one_by_one
from thalweg.engine.shared.store import Store


class SinkError(ValueError):
    """A sink that can't be opened as asked, and what to do about it."""


class Sink(Protocol):
    """Takes the emissions of one query, tick by tick.

    `progress` is committed with the tick: what it describes is durable when it returns. After a
    crash the sink is opened with what was committed last and drops whatever it has beyond that; the
    tick that was interrupted then comes again. `open(None)` is the very first time.
    """

    def open(self, committed: bytes | None) -> None: ...

    def write(self, emission: Emission) -> None: ...

    def progress(self) -> bytes: ...

    def close(self) -> None: ...


class SinkOutlet:
    """All sinks of all queries as one outlet; sinks are named `query/name`."""

    def __init__(self) -> None:
        self._sinks: dict[tuple[str, str], Sink] = {}
        self._of: dict[str, list[Sink]] = {}  # by query
        self._tick = 0  # the last one that was delivered
        self._before: dict[tuple[str, str], bytes] = {}  # progress when its delivery began

    def attach(self, query: str, name: str, sink: Sink) -> None:
        """Take in a sink that is open; it gets the query's emissions from the next tick on."""
        self._sinks[query, name] = sink
        self._of.setdefault(query, []).append(sink)
        self._before[query, name] = sink.progress()

    def detach(self, query: str, name: str | None = None) -> None:
        """Close one sink of a query, or all of them."""
        for key in [k for k in self._sinks if k[0] == query and name in (None, k[1])]:
            self._before.pop(key)
            sink = self._sinks.pop(key)
            self._of[query].remove(sink)
            sink.close()

    def wants(self, query: str) -> bool:
        return bool(self._of.get(query))

    def deliver(self, emissions: Sequence[Emission | FamilyEmission]) -> None:
        if not emissions:
            return
        if emissions[0].tick == self._tick:
            self._roll_back()
        else:
            self._tick = emissions[0].tick
            self._before = {key: sink.progress() for key, sink in self._sinks.items()}
        for emission in one_by_one(emissions):
            for sink in self._of.get(emission.query, ()):
                sink.write(emission)

    def _roll_back(self) -> None:
        """A tick comes again without a crash (a task or another sink failed in it)."""
        for key, sink in self._sinks.items():
            sink.close()
            sink.open(self._before[key])

    def progress(self) -> Mapping[str, bytes]:
        return {progress_name(*key): sink.progress() for key, sink in self._sinks.items()}

    def close(self) -> None:
        for query, name in list(self._sinks):
            self.detach(query, name)


def open_where_it_was(store: Store, query: str, name: str, sink: Sink) -> None:
    """Open a sink where it left off, or for the first time, as the book says.

    A first opening is written down at once, so that what a crash leaves in the sink's file can be
    told from what was there before.
    """
    place = progress_name(query, name)
    sink.open(store.progress(place))
    store.write_progress(place, sink.progress())


def progress_name(query: str, sink: str) -> str:
    """Under which name the book keeps a sink's progress."""
    return f"sink/{query}/{sink}"
