"""What a sink is, and how sinks become the engine's outlet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from thalweg.engine.shared.results import Emission


class Sink(Protocol):
    """Takes the emissions of one query, tick by tick.

    `progress` is committed with the tick. After a crash the sink is opened with what was committed
    last and drops whatever it has beyond that; the tick that was interrupted then comes again.
    """

    def open(self, committed: bytes | None) -> None: ...

    def write(self, emission: Emission) -> None: ...

    def progress(self) -> bytes: ...

    def close(self) -> None: ...


class SinkOutlet:
    """All sinks of all queries as one outlet; sinks are named `query/name`."""

    def __init__(self) -> None:
        self._sinks: dict[str, dict[str, Sink]] = {}

    def attach(self, query: str, name: str, sink: Sink, committed: bytes | None) -> None:
        sink.open(committed)
        self._sinks.setdefault(query, {})[name] = sink

    def detach(self, query: str) -> None:
        for sink in self._sinks.pop(query, {}).values():
            sink.close()

    def deliver(self, emissions: Sequence[Emission]) -> None:
        for emission in emissions:
            for sink in self._sinks.get(emission.query, {}).values():
                sink.write(emission)

    def progress(self) -> Mapping[str, bytes]:
        return {
            progress_name(query, name): sink.progress()
            for query, sinks in self._sinks.items()
            for name, sink in sinks.items()
        }

    def close(self) -> None:
        for query in list(self._sinks):
            self.detach(query)


def progress_name(query: str, sink: str) -> str:
    """Under which name the book keeps a sink's progress."""
    return f"sink/{query}/{sink}"
