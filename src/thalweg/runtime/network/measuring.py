"""What a node knows of itself, for those who plan: rates, load, delays, what it was given to do."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections import deque
from collections.abc import Sequence

import msgspec

from thalweg.engine.site import Site
from thalweg.engine.site.publications import is_mirror
from thalweg.plan.catalog import StreamDef
from thalweg.plan.types import Kind
from thalweg.plan.windows import BEGINNING
from thalweg.runtime.data.fragments import Fragment
from thalweg.runtime.network.directory import NodeInfo
from thalweg.runtime.transport.addresses import host_and_port

_SAMPLE_EVERY_S, _SAMPLES = 1.0, 60
_DELAY_FOR_S, _CONNECT_S, _TRIES = 30.0, 1.0, 3
_TEXT_BYTES, _VALUE_BYTES = 24, 8  # of a value on the wire


class StreamMeasure(msgspec.Struct, frozen=True):
    """Of a stream at its home."""

    rows_per_s: float
    row_bits: float
    has_begun: bool


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


class Meter:
    """Looks at a site after its ticks."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._lock = threading.Lock()
        self._samples: deque[tuple[float, dict[str, int]]] = deque(maxlen=_SAMPLES)
        self._delays: dict[str, tuple[float, float]] = {}  # when measured, and how long
        self._sample()
        site.listen(self._sample)

    def _sample(self) -> None:
        now = time.monotonic()
        with self._lock:
            if self._samples and now - self._samples[-1][0] < _SAMPLE_EVERY_S:
                return
            with contextlib.suppress(Exception):  # the site closes
                self._samples.append((now, self._site.engine.store.inputs.arrived()))

    def rows_per_s(self) -> dict[str, float]:
        """Of all streams that come in here, over the last minute."""
        arrived, now = self._site.engine.store.inputs.arrived(), time.monotonic()
        with self._lock:
            since, before = self._samples[0] if self._samples else (now, {})
        seconds = max(now - since, _SAMPLE_EVERY_S)
        return {name: max(0, n - before.get(name, 0)) / seconds for name, n in arrived.items()}

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
            if not is_mirror(s)
        }

    def load(self) -> tuple[float, float]:
        """CPU seconds of ticks, and bits that came in, both so far."""
        arrived = self._site.engine.store.inputs.arrived()
        bits = sum(arrived.get(s.name, 0) * row_bits(s) for s in self._site.catalog.streams())
        return sum(q.cost_s for q in self._site.queries()), bits

    def delays_ms(self, nodes: Sequence[NodeInfo]) -> dict[str, float]:
        """Half of the time that a connection takes to come about; who does not answer is left
        out."""
        found = {}
        for node in nodes:
            known = self._delays.get(node.name)
            if known is None or time.monotonic() - known[0] > _DELAY_FOR_S:
                took = _connecting_ms(node.data)
                if took is None:
                    continue
                self._delays[node.name] = known = time.monotonic(), took / 2
            found[node.name] = known[1]
        return found


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
