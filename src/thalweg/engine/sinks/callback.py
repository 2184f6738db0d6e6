"""A Python function as a sink: at least once, with ids."""

from __future__ import annotations

from collections.abc import Callable

from thalweg.engine.shared.results.emission import Emission


class CallbackSink:
    """Calls a function with each emission that has rows.

    A crash between the call and the commit of the tick repeats the call, with the same ids.
    """

    def __init__(self, call: Callable[[Emission], None]) -> None:
        self._call = call

    def open(self, committed: bytes | None) -> None:
        pass

    def write(self, emission: Emission) -> None:
        if emission.rows.height:
            self._call(emission)

    def progress(self) -> bytes:
        return b""

    def close(self) -> None:
        pass
