"""The tree of each stream that is at home here: who has told of itself lately, and who hangs where.

What readers have measured they say again and again: after a restart the home knows it again within
a few seconds, and until then everybody stays where it is. From whom they have the stream, or may,
is written down: the home gives leave to read somebody only where nobody comes to read itself,
whatever of this each of them has carried out. It is the one writer of that.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import msgspec

from thalweg.engine.failures import FAILURES
from thalweg.engine.site import Site
from thalweg.runtime.data.messages import Hang, Hung
from thalweg.runtime.data.server import CannotPublish
from thalweg.runtime.network.directory import Directory
from thalweg.runtime.network.labels.labels import fed_entry
from thalweg.runtime.network.measuring import DELAY_FOR_S, LONG_S, Meter
from thalweg.runtime.network.trees.choosing import Choice, Member

_HEARD_FOR_S = 15.0
_CHOOSE_EVERY_S = 1.0
_NEW_FOR_S = 30.0  # so long a newcomer has to get where it should hang
_decode = msgspec.msgpack.Decoder(dict[str, tuple[str, ...]]).decode


def _note(stream: str) -> str:
    return f"tree/{stream}"


Edges = dict[str, tuple[str, ...]]  # by reader: its publishers


def after(edges: Edges, asked: Hang) -> tuple[Edges, bool]:
    """What is known once a reader has spoken, and whether it may read whom it has asked for."""
    known = {**edges, asked.reader: asked.publishers}
    if asked.to is None or asked.reader in above(known, asked.to):
        return known, False
    return {**known, asked.reader: (*asked.publishers, asked.to)}, True


def above(edges: Mapping[str, Sequence[str]], node: str) -> set[str]:
    """A node, and all from whom it has a stream, or may have it."""
    found, waiting = set[str](), [node]
    while waiting:
        at = waiting.pop()
        if at not in found:
            found.add(at)
            waiting += edges.get(at, ())
    return found


class TreeBook:
    def __init__(
        self, site: Site, directory: Directory, meter: Meter, choice: Callable[[], Choice]
    ) -> None:
        self._site, self._directory, self._meter, self._choice = site, directory, meter, choice
        self._heard: dict[str, dict[str, tuple[float, Hang]]] = {}  # by stream and reader
        self._chosen: dict[str, tuple[float, dict[str, str]]] = {}
        self._lock = threading.Lock()
        self._came: dict[tuple[str, str], float] = {}  # newcomers: stream, reader, since when
        self._settled: set[tuple[str, str]] = set()
        self._serials: dict[tuple[str, str], int] = {}
        self._edges: dict[str, Edges] = {}  # by stream
        directory.on_gone(self._gone)

    # --- who reads whom

    def _edges_of(self, stream: str) -> Edges:
        if stream not in self._edges:
            note = self._site.engine.store.note(_note(stream))
            self._edges[stream] = {} if note is None else _decode(note)
        return self._edges[stream]

    def _write(self, stream: str, edges: Edges) -> None:
        if edges != self._edges_of(stream):
            self._site.engine.store.write_note(_note(stream), msgspec.msgpack.encode(edges))
            self._edges[stream] = edges

    def _grants(self, stream: str, asked: Hang) -> bool:
        """Write down from whom a reader has the stream, and may have it from now on."""
        key = stream, asked.reader
        if asked.serial <= self._serials.get(key, 0):
            return False  # it was on its way for long, and nobody waits for the answer
        self._serials[key] = asked.serial
        edges, granted = after(self._edges_of(stream), asked)
        self._write(stream, edges)
        return granted

    def _gone(self, node: str) -> None:
        with self._lock, suppress(*FAILURES):
            self._settled = {(s, r) for s, r in self._settled if r != node}
            for stream in [s.name for s in self._site.catalog.streams()]:
                edges = self._edges_of(stream)
                self._write(stream, {r: p for r, p in edges.items() if r != node})

    # --- who should

    def parent_of(self, asked: Hang) -> Hung:
        """Raises CannotPublish."""
        me, now = self._directory.me.name, time.monotonic()
        entry = fed_entry(self._directory.defined(), asked.stream)
        if entry is None or entry.node != me:
            raise CannotPublish(f"{asked.stream} is not at home at {me}")
        with self._lock:
            granted = self._grants(entry.name, asked)
            self._heard.setdefault(entry.name, {})[asked.reader] = now, asked
            when, chosen = self._chosen.get(entry.name, (0.0, {}))
        if now - when > _CHOOSE_EVERY_S or asked.reader not in chosen:
            chosen = self._choice().parents(*self.members(entry.name))
            with self._lock:
                self._chosen[entry.name] = now, chosen
        wished = chosen.get(asked.reader, asked.parent)
        if self._choice().in_rounds and self._is_settled(entry.name, asked, wished, now):
            wished = ""
        return Hung(wished, granted)

    def _is_settled(self, stream: str, asked: Hang, wished: str, now: float) -> bool:
        """Whether a reader has once got where it should hang, or could not in time: what the home
        wishes does not count any more."""
        key = stream, asked.reader
        with self._lock:
            is_late = now - self._came.setdefault(key, now) > _NEW_FOR_S
            if is_late or asked.parent == wished or asked.parent != self._directory.me.name:
                self._settled.add(key)
                del self._came[key]
            return key in self._settled

    def members(self, stream: str) -> tuple[Member, list[Member]]:
        """The home, and all others of a stream's tree or who might pass it on."""
        info = {n.name: n for n in self._directory.nodes()}
        since = time.monotonic() - _HEARD_FOR_S
        with self._lock:
            told = {r: h for r, (at, h) in self._heard.get(stream, {}).items() if at > since}
            settled = set(self._settled)
        me = self._directory.me
        others = [n for n in info.values() if n.name != me.name and self._directory.is_up(n.name)]
        for_s = LONG_S if self._choice().in_rounds else DELAY_FOR_S
        delays = self._meter.delays_ms(others, for_s)
        home = Member(me.name, me.site, delays, row_ms=self._meter.row_ms())
        found = []
        for node in others:
            hang = told.get(node.name)
            if hang is not None:
                found.append(
                    Member(
                        node.name,
                        node.site,
                        hang.delays_ms,
                        0.0 if node.only_passes_on else hang.rows_per_s,
                        hang.row_ms,
                        node.only_passes_on,
                        hang.parent,
                        hang.hop_ms,
                        (stream, node.name) not in settled,
                    )
                )
            elif node.only_passes_on:
                found.append(Member(node.name, node.site, is_broker=True, is_new=True))
        return home, found

    def tree(self, stream: str) -> list[dict[str, object]]:
        """For people: who has it from whom, at present and as it is wished."""
        home, members = self.members(stream)
        wished = self._choice().parents(home, members)
        return [
            {
                "node": m.name,
                "site": m.site,
                "parent": m.parent,
                "wished": wished[m.name],
                "rows_per_s": m.rows_per_s,
                "broker": m.is_broker,
            }
            for m in members
            if m.parent is not None
        ]

    def why(self, stream: str, node: str) -> list[str]:
        home, members = self.members(stream)
        if node != home.name and node not in [m.name for m in members]:
            return [f"{node} does not have {stream}"]
        return self._choice().why(home, members, node)
