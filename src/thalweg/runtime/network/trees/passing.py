"""How long rows of other nodes' streams wait at this one before they can be passed on.

A batch lands, a tick takes it, and from then on it is what this node has: its queries say it, and
whoever reads the stream from here gets it. Who listens is told of that moment (`fidelity.py`).
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from thalweg.engine.site import Site

_LATELY_S, _FOR_S = 10.0, 120.0


@dataclass(frozen=True, slots=True)
class Landed:
    """A batch: all of its stream below `upto`; `first` is the first instant of its rows, None if
    it has none."""

    first: int | None
    upto: int
    at_s: float


Taken = Callable[[str, Landed, float], None]  # the stream, what a tick has taken of it, and when


class Passing:
    def __init__(self, site: Site, taken: Taken = lambda *_: None) -> None:
        self._site, self._taken = site, taken
        self._waiting: dict[str, deque[Landed]] = {}
        self._waits: deque[tuple[float, float]] = deque(maxlen=4096)  # when, and how long
        self._lock = threading.Lock()
        site.listen(self._ticked)

    def landed(self, stream: str, first: int | None, upto: int) -> None:
        """On the thread of the stream's source."""
        with self._lock:
            self._waiting.setdefault(stream, deque()).append(Landed(first, upto, time.monotonic()))

    def forget(self, stream: str) -> None:
        with self._lock:
            self._waiting.pop(stream, None)

    def _ticked(self) -> None:
        now = time.monotonic()
        with self._lock:
            streams = [s for s, batches in self._waiting.items() if batches]
        if not streams:
            return
        reached = self._site.engine.watermarks(streams)
        for stream in streams:
            if stream not in reached:
                self.forget(stream)
                continue
            with self._lock:
                batches = self._waiting.get(stream, deque())
                while batches and batches[0].upto <= reached[stream]:
                    batch = batches.popleft()
                    if batch.first is not None:
                        self._waits.append((now, now - batch.at_s))
                    self._taken(stream, batch, now)

    def hop_s(self) -> float:
        """Of rows that were taken lately, on average; or of the last ones, if it was long ago; 0 if
        nothing is known."""
        now = time.monotonic()
        with self._lock:
            known = [(at, s) for at, s in self._waits if at > now - _FOR_S]
        late = [s for at, s in known if at > now - _LATELY_S] or [s for _, s in known[-1:]]
        return sum(late) / len(late) if late else 0.0
