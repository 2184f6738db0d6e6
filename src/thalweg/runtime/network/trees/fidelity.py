"""How faithful this node is to the streams that it reads, while they flow (`staleness.py`).

Homes keep up to where their streams have come, and when, for those who ask; each reader asks every
two seconds, one home after the other, and lays beside it when its own ticks had which rows.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from thalweg.engine.failures import FAILURES
from thalweg.engine.site import Site
from thalweg.engine.site.publications import is_mirror
from thalweg.plan.catalog import StreamDef
from thalweg.runtime.data.client import NotServed, Unreachable
from thalweg.runtime.data.messages import Heard, Reached
from thalweg.runtime.network.directory import Directory
from thalweg.runtime.network.kept import Kept
from thalweg.runtime.network.labels.labels import base_of, fed_entry
from thalweg.runtime.network.mirrors.mirrored import home_of
from thalweg.runtime.network.mirrors.mirrors import Mirrors
from thalweg.runtime.network.trees.passing import Landed
from thalweg.runtime.network.trees.staleness import Clock, Heads, Period, Staleness

log = logging.getLogger(__name__)

_ASK_EVERY_S = 2.0
_ASKED_FOR_S = 60.0  # so long a home goes on to look for somebody who has asked
_MOST_WAITING = 4096


@dataclass(slots=True)
class _Reading:
    """A stream of another node."""

    heads: Heads
    staleness: Staleness
    # Taken by ticks, and not laid beside what the home has yet: the first instant, and when.
    waiting: list[tuple[int, float]]
    upto: int | None = None  # all below it has been taken
    compared_s: float = 0.0  # what is later is not known yet


class LiveFidelity:
    def __init__(self, site: Site, directory: Directory, mirrors: Mirrors) -> None:
        self._site, self._directory, self._mirrors = site, directory, mirrors
        self._lock = threading.Lock()
        self._own: dict[str, tuple[Heads, float]] = {}  # own streams, and when last asked for
        self._read: dict[str, _Reading] = {}
        self._clocks: dict[str, Clock] = {}
        self._homes = Kept(mirrors.connect)
        self._stop = threading.Event()
        site.listen(self._ticked)
        self._thread = threading.Thread(target=self._run, name="fidelity", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join(5)
        self._homes.close()

    # --- as a home

    def reached(self, asked: Heard) -> Reached:
        """Of this node's streams that a reader has asked for: how they went on since then."""
        found: dict[str, list[tuple[float, int]]] = {}
        now = time.monotonic()
        with self._lock:
            for stream, since in asked.streams.items():
                heads, _ = self._own.get(stream, (Heads(), now))
                self._own[stream] = heads, now
                found[stream] = heads.since(since)
        return Reached(time.monotonic(), found)

    def _ticked(self) -> None:
        now = time.monotonic()
        with self._lock:
            for stream, (_, asked) in list(self._own.items()):
                if now - asked > _ASKED_FOR_S:
                    del self._own[stream]
            wanted = {stream: heads for stream, (heads, _) in self._own.items()}
        if not wanted:
            return
        # Of due rows, too, what counts is when the stream itself had them.
        bases = {stream: base_of(stream) or stream for stream in wanted}
        reached = self._site.engine.watermarks(set(bases.values()))
        for stream, base in bases.items():
            if base in reached:
                with self._lock:
                    wanted[stream].add([(now, reached[base])])

    # --- as a reader

    def taken(self, stream: str, batch: Landed, at_s: float) -> None:
        """A tick has taken a batch."""
        with self._lock:
            reading = self._read.get(stream)
            if reading is None:
                return  # nobody has asked its home yet
            reading.upto = batch.upto
            if batch.first is not None and len(reading.waiting) < _MOST_WAITING:
                reading.waiting.append((batch.first, at_s))

    def _run(self) -> None:
        while not self._stop.wait(_ASK_EVERY_S):
            try:
                self._ask_all()
            except FAILURES as error:
                if not self._stop.is_set():
                    log.info("fidelity: %s", error)

    def _ask_all(self) -> None:
        if self._directory.me.only_passes_on:
            return  # it reads for others, who tell how late that makes them
        by_home: dict[str, list[str]] = {}
        for stream in self._mirrored():
            by_home.setdefault(home_of(stream), []).append(stream.name)
        with self._lock:
            names = {name for given in by_home.values() for name in given}
            self._read = {n: r for n, r in self._read.items() if n in names}
        for home, streams in by_home.items():
            if self._directory.is_up(home) and not self._stop.is_set():
                self._ask(home, streams)

    def _mirrored(self) -> Iterator[StreamDef]:
        """Mirrors of base streams, under their own names."""
        defined = self._directory.defined()
        for stream in self._site.catalog.streams():
            if not is_mirror(stream):
                continue
            entry = fed_entry(defined, stream.name)
            if entry is not None and home_of(stream) == entry.node:
                yield stream

    def _ask(self, home: str, streams: list[str]) -> None:
        with self._lock:
            known = {s: self._read[s].heads.last for s in streams if s in self._read}
        since = {s: head[0] if (head := known.get(s)) is not None else -1.0 for s in streams}
        try:
            client = self._homes.to(home)
            asked = time.monotonic()
            answer = client.ask(Heard(self._directory.me.name, since), within_s=5)
            answered = time.monotonic()
        except (Unreachable, NotServed):
            self._homes.drop(home)
            return  # what comes later is laid beside what it says later
        assert isinstance(answer, Reached)
        with self._lock:
            clock = self._clocks.setdefault(home, Clock())
            clock.heard(asked, answered, answer.now_s)
            self._compare(clock, answer.heads, answered)

    def _compare(
        self, clock: Clock, heads: Mapping[str, list[tuple[float, int]]], now_s: float
    ) -> None:
        offset = clock.offset_s
        assert offset is not None
        for stream, more in heads.items():
            if stream not in self._read:
                self._read[stream] = _Reading(Heads(), Staleness(now_s), [])
            reading = self._read[stream]
            reading.heads.add(more)
            left = []
            for first, at_s in reading.waiting:
                had = reading.heads.had(first)
                if had is None:
                    left.append((first, at_s))  # the home tells next time
                else:
                    reading.staleness.came(had + offset, at_s)
            reading.waiting, reading.compared_s = left, now_s

    # --- what is told

    def periods(self, length_s: float, count: int) -> dict[str, tuple[list[Period], float]]:
        """By stream: the last periods up to when its home was last asked, and by how much clocks
        may be off."""
        found = {}
        homes = {s.name: home_of(s) for s in self._mirrored()}
        with self._lock:
            for stream, reading in self._read.items():
                if (home := homes.get(stream)) is None:
                    continue
                clock = self._clocks[home]
                pending = self._pending(reading, clock.offset_s or 0.0)
                told = reading.staleness.periods(reading.compared_s, length_s, count, pending)
                found[stream] = told, clock.error_s
        return found

    @staticmethod
    def _pending(reading: _Reading, offset: float) -> float | None:
        last = reading.heads.last
        if last is None or reading.upto is None or reading.upto >= last[1]:
            return None
        had = reading.heads.had(reading.upto)
        return None if had is None else had + offset
