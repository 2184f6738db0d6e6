"""The project's own engine behind the interface, in a data directory of its own.

A node with `--engine shared` does without: its site is this engine, with all that it shares between
queries. This is the interface's second implementation, which keeps it honest, and what tests of
nodes use where Spark would take too long to start.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import polars as pl

from thalweg.engine.pieces import Piece
from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.frames import names
from thalweg.engine.shared.registering import Past
from thalweg.engine.shared.tick.executors import Executor
from thalweg.engine.site.publications import pieces
from thalweg.engine.wrappers.interface import EngineError
from thalweg.plan.catalog import PLACE, QueryDef, StreamDef
from thalweg.plan.engines import SHARED
from thalweg.plan.nodes import Node, Scan, base_streams, transform
from thalweg.plan.travelling import decode_plan, encode_plan
from thalweg.plan.windows import BEGINNING, FOREVER

_KEPT = "wrapped/"  # notes: what was added
_INSTANT, _POSITION = (f.name for f in PLACE)


class _Kept(msgspec.Struct, frozen=True):
    plan: bytes
    begins: int | None


class SharedWrapper:
    """Ticks run on the caller's thread."""

    name = SHARED

    def __init__(
        self,
        folder: Path,
        executor: Executor | None = None,
    ) -> None:
        self._engine = SharedEngine(folder, executor)
        self.changed: Callable[[], None] = lambda: None
        self._lock = threading.RLock()
        self._added: dict[str, QueryDef] = {}
        self._seconds = 0.0
        note = self._engine.store.note(_KEPT)
        self._kept = {} if note is None else msgspec.msgpack.decode(note, type=dict[str, _Kept])
        for query, kept in self._kept.items():
            self._register(query, kept)

    def refusal(self, plan: Node) -> str | None:
        return None

    def add(self, query: str, plan: Node, begins: int | None) -> None:
        with self._lock, self._engine.store.transaction():
            if query in self._added:
                return
            kept = _Kept(encode_plan(plan), begins)
            self._register(query, kept)
            self._kept[query] = kept
            self._write()

    def _register(self, query: str, kept: _Kept) -> None:
        """Each query has streams of its own, since each begins with a past of its own."""
        plan = decode_plan(kept.plan)
        own = {s.name: _own(query, s) for s in base_streams(plan)}

        def change(node: Node) -> Node:
            return Scan(own[node.stream.name]) if isinstance(node, Scan) else node

        made = QueryDef(query, transform(plan, change))
        for stream in own.values():
            self._engine.add_stream(stream)
        begins = BEGINNING if kept.begins is None else kept.begins
        self._engine.readers.keep(query)
        self._engine.add_queries([made], pasts={s.name: Past(begins) for s in own.values()})
        self._added[query] = made

    def _write(self) -> None:
        self._engine.store.write_note(_KEPT, msgspec.msgpack.encode(self._kept))

    def drop(self, query: str) -> None:
        with self._lock, self._engine.store.transaction():
            made = self._added.pop(query, None)
            if made is None:
                return
            del self._kept[query]
            self._write()
            self._engine.readers.forget(query)
            self._engine.drop_query(query)
            for stream in base_streams(made.plan):
                self._engine.drop_stream(stream.name)

    def queries(self) -> list[str]:
        with self._lock:
            return sorted(self._added)

    def fed(self, query: str, stream: str) -> int:
        resume = self._engine.landing.resume_point(self._stream(query, stream))
        return BEGINNING if resume is None else int(resume)

    def feed(self, query: str, stream: str, piece: Piece) -> None:
        with self._lock:
            own, known = self._stream(query, stream), self.fed(query, stream)
            if piece.upto <= known:
                return
            if piece.low > known:
                raise EngineError(f"{stream}: nothing was fed from {known} to {piece.low}")
            rows = piece.rows
            if known > BEGINNING:
                rows = rows.filter(pl.col(_INSTANT) >= known)
            rows = rows.sort(_INSTANT, _POSITION)
            promise = piece.upto if BEGINNING < piece.upto < FOREVER else None
            self._engine.landing.push(
                own,
                _tuples(own, rows),
                positions=rows[_POSITION],
                resume=str(piece.upto).encode(),
                promise=promise,
            )
            if piece.upto >= FOREVER:
                self._engine.landing.finish(own)
            for tick in self._engine.run_to_end():
                self._seconds += tick.seconds
        self.changed()

    def publish(self, query: str, since: int) -> Iterator[Piece]:
        made = self._query(query)
        columns = names(len(made.plan.schema))
        for piece in pieces(self._engine, made, since):
            yield Piece(
                piece.low,
                piece.upto,
                piece.rows.rename(dict(zip(piece.rows.columns[2:], columns, strict=True))),
            )

    def forget(self, query: str, below: int) -> None:
        self._engine.readers.acknowledge(query, below)

    def seconds(self) -> float:
        return self._seconds

    def close(self) -> None:
        self._engine.close()

    def _query(self, query: str) -> QueryDef:
        with self._lock:
            if query not in self._added:
                raise EngineError(f"{query} was not added, or was dropped")
            return self._added[query]

    def _stream(self, query: str, stream: str) -> StreamDef:
        wanted = f"{query}/{stream}"
        return next(s for s in base_streams(self._query(query).plan) if s.name == wanted)


def _own(query: str, stream: StreamDef) -> StreamDef:
    """Lateness was judged before, and nothing is late here."""
    return replace(stream, name=f"{query}/{stream.name}", source=None, lateness=0)


def _tuples(stream: StreamDef, rows: pl.DataFrame) -> pl.DataFrame:
    if stream.timestamp_index is None:
        stamp = pl.col(_INSTANT)
        if not stream.timestamp_type.is_integer:
            stamp = (stamp * stream.resolution_us).cast(pl.Datetime("us"))
        rows = rows.with_columns(stamp.alias(stream.timestamp))
    return rows.drop([c for c in ("_ts", "_op", _INSTANT, _POSITION) if c in rows.columns])
