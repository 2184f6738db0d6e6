"""What a node knows of itself, for those who plan: rates, load, delays, what it was given to do."""

from __future__ import annotations

import contextlib
import resource
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from thalweg.engine.site import Site
from thalweg.engine.site.publications import is_internal, is_mirror
from thalweg.plan.catalog import StreamDef
from thalweg.plan.engines import SHARED
from thalweg.plan.types import Kind
from thalweg.plan.windows import BEGINNING
from thalweg.runtime.data.fragments import Fragment
from thalweg.runtime.network.directory import NodeInfo
from thalweg.runtime.transport.addresses import host_and_port

_SAMPLE_EVERY_S, _SAMPLES = 1.0, 60
LATELY_S = 10.0  # what a node does now, for who must hear of a change soon
DELAY_FOR_S, LONG_S = 30.0, 600.0  # so long a delay counts as known
_CONNECT_S, _TRIES = 1.0, 3
_TEXT_BYTES, _VALUE_BYTES = 24, 8  # of a value on the wire


class StreamMeasure(msgspec.Struct, frozen=True):
    """Of a stream at its home."""

    rows_per_s: float
    row_bits: float
    has_begun: bool


class Decided(msgspec.Struct, frozen=True):
    """Where a protocol between nodes has put a query, by the last word that was followed."""

    ticket: str  # by which the protocol knows the query
    at: tuple[str, ...]  # the nodes of its tree (`placement/sand`); of a whole query, the one
    asked: bytes = b""  # what was asked of the protocol, to ask again after a stop


class Task(msgspec.Struct, frozen=True):
    """What a placed query, which stands at this node, was given (`deploying.py`)."""

    query: str
    plan: bytes
    strategy: str
    late: bool
    runs: tuple[tuple[str, str], ...]  # node and operator
    sends: tuple[tuple[str, str, str], ...]  # from, to, stream
    words: tuple[str, ...] = ()  # why, in the strategy's own
    fragment: Fragment | None = None  # what is computed where
    joined_at: tuple[str, ...] = ()  # of a join across nodes: the node of each equality
    routing: str = ""  # and by which policy its rows choose their way
    bound_ms: float | None = None  # how late its results may be
    decided: Decided | None = None  # by nodes together (`runtime/network/protocols`)


class NodeMeasure(msgspec.Struct, frozen=True):
    """By name: streams at home here, delays to other nodes."""

    name: str
    streams: dict[str, StreamMeasure]
    delays_ms: dict[str, float]
    cpu_s: float  # that ticks have taken so far
    bits: float  # that have come in so far
    tasks: tuple[Task, ...] = ()
    cpu: float | None = None  # cores, and bits per second; None: no limit is set
    out_bps: float | None = None
    in_bps: float | None = None
    engine: str = SHARED  # which runs queries there


class Meter:
    """Looks at a site after its ticks."""

    def __init__(self, site: Site, elsewhere: Callable[[], float] = lambda: 0.0) -> None:
        """`elsewhere` tells the seconds that another engine than the site's has taken."""
        self._site, self._elsewhere = site, elsewhere
        self._lock = threading.Lock()
        # When, rows by stream so far, seconds of ticks so far.
        self._samples: deque[tuple[float, dict[str, int], float]] = deque(maxlen=_SAMPLES)
        self._delays: dict[str, tuple[float, float]] = {}  # when measured, and how long
        self._sample()
        site.listen(self._sample)

    def _sample(self) -> None:
        now = time.monotonic()
        with self._lock:
            if self._samples and now - self._samples[-1][0] < _SAMPLE_EVERY_S:
                return
            with contextlib.suppress(Exception):  # the site closes
                self._samples.append((now, *self._now()))

    def _now(self) -> tuple[dict[str, int], float]:
        arrived = self._site.engine.store.inputs.arrived()
        return arrived, sum(self._site.status.seconds().values())

    def _since(self, now: float, over_s: float | None) -> tuple[float, dict[str, int], float]:
        """The sample that is so old, or nearly; the oldest if nobody says."""
        with self._lock:
            known = list(self._samples)
        if over_s is not None:
            old = [s for s in known if s[0] <= now - over_s]
            known = [*old[-1:], *(s for s in known if s[0] > now - over_s)]
        return known[0] if known else (now, {}, 0.0)

    def rows_per_s(self, over_s: float | None = None) -> dict[str, float]:
        """Of all streams that come in here, over the last minute, or less."""
        arrived, now = self._site.engine.store.inputs.arrived(), time.monotonic()
        since, before, _ = self._since(now, over_s)
        seconds = max(now - since, _SAMPLE_EVERY_S)
        return {name: max(0, n - before.get(name, 0)) / seconds for name, n in arrived.items()}

    def busy(self) -> tuple[float, float]:
        """Lately: the share of time in which ticks have run, and the milliseconds that a row has
        taken of that."""
        now = time.monotonic()
        since, before, spent_s = self._since(now, LATELY_S)
        arrived, seconds = self._now()
        rows = sum(arrived.values()) - sum(before.values())
        took_s = max(0.0, seconds - spent_s)
        return took_s / max(now - since, _SAMPLE_EVERY_S), 1000 * took_s / rows if rows > 0 else 0.0

    def streams(self) -> dict[str, StreamMeasure]:
        """Those that are at home here."""
        rates = self.rows_per_s()
        return {
            s.name: StreamMeasure(
                rates.get(s.name, 0.0),
                row_bits(s),
                self._site.engine.watermark(s.name) > BEGINNING,
            )
            for s in self._site.catalog.streams()
            if not is_internal(s)
        }

    def load(self) -> tuple[float, float]:
        """CPU seconds of ticks, and bits that came in, both so far."""
        arrived = self._site.engine.store.inputs.arrived()
        bits = sum(arrived.get(s.name, 0) * row_bits(s) for s in self._site.catalog.streams())
        return sum(self._site.status.seconds().values()) + self._elsewhere(), bits

    def in_bps(self) -> float:
        """From other nodes, over the last minute."""
        rates = self.rows_per_s()
        mirrors = (s for s in self._site.catalog.streams() if is_mirror(s))
        return sum(rates.get(s.name, 0.0) * row_bits(s) for s in mirrors)

    def row_ms(self) -> float:
        """CPU that a row has taken here so far."""
        rows = sum(self._site.engine.store.inputs.arrived().values())
        return 1000 * sum(self._site.status.seconds().values()) / rows if rows else 0.0

    def delays_ms(self, nodes: Sequence[NodeInfo], for_s: float = DELAY_FOR_S) -> dict[str, float]:
        """Half of the time that a connection takes to come about; who does not answer is left
        out."""
        found = {}
        for node in nodes:
            known = self._delays.get(node.name)
            if known is None or time.monotonic() - known[0] > for_s:
                took = _connecting_ms(node.data)
                if took is None:
                    continue
                self._delays[node.name] = known = time.monotonic(), took / 2
            found[node.name] = known[1]
        return found


def memory_bytes() -> float:
    """What this process has in memory now; where that can't be told, the most that it has had."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return float(most if sys.platform == "darwin" else 1024 * most)
    return float(pages * resource.getpagesize())


def row_bits(stream: StreamDef) -> float:
    """Of a tuple on the wire, by its columns' types."""
    texts = sum(f.type.kind is Kind.VARCHAR for f in stream.fields)
    plain = len(stream.fields) - texts + 2  # instant and position
    return 8.0 * (texts * _TEXT_BYTES + plain * _VALUE_BYTES)


def _connecting_ms(address: str) -> float | None:
    best = None
    for _ in range(_TRIES):
        began = time.perf_counter()
        try:
            socket.create_connection(host_and_port(address), _CONNECT_S).close()
        except OSError:
            return best
        took = (time.perf_counter() - began) * 1000
        best = took if best is None else min(best, took)
    return best
