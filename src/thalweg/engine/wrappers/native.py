"""Plain Structured Streaming as a node's engine: a streaming query of Spark's for each query.

What it can't do exactly it refuses (`native/limits.py`); beyond that:

- UPPER and LOWER, which Java's tables of letters decide: another engine that takes over in the
  middle of a stream would not take back what this one has said;
- it shares nothing between queries, and its state can be neither read nor moved: a query goes
  elsewhere by being computed anew from its inputs.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
from pyspark.sql import SparkSession

from thalweg.engine.pieces import Piece
from thalweg.engine.wrappers.interface import EngineError
from thalweg.engine.wrappers.native_query import NativeQuery
from thalweg.engine.wrappers.refusals import native_refusal
from thalweg.plan.engines import NATIVE
from thalweg.plan.nodes import Node
from thalweg.plan.travelling import decode_plan, encode_plan

_NAME = re.compile(r"[A-Za-z0-9_-]+")
_KEPT = "query.msgpack"


class _Kept(msgspec.Struct, frozen=True):
    plan: bytes
    begins: int | None


class NativeWrapper:
    """`changed`, which may be set, is called on any thread when some query has said more. With
    `owns_spark`, the session ends with it."""

    name = NATIVE

    def __init__(self, folder: Path, spark: SparkSession, *, owns_spark: bool = False) -> None:
        self._folder, self._spark, self._owns_spark = folder, spark, owns_spark
        self.changed: Callable[[], None] = lambda: None
        self._lock = threading.Lock()
        self._queries: dict[str, NativeQuery] = {}
        self._ended = 0.0  # seconds of those that were dropped
        folder.mkdir(parents=True, exist_ok=True)
        for kept in sorted(folder.glob(f"*/{_KEPT}")):
            found = msgspec.msgpack.decode(kept.read_bytes(), type=_Kept)
            self._begin(kept.parent.name, decode_plan(found.plan), found.begins)

    def refusal(self, plan: Node) -> str | None:
        return native_refusal(plan)

    def add(self, query: str, plan: Node, begins: int | None) -> None:
        if not _NAME.fullmatch(query):
            raise ValueError(f"{query}: a name of letters and digits is wanted")
        if (why := self.refusal(plan)) is not None:
            raise EngineError(why)
        with self._lock:
            if query in self._queries:
                return
            own = self._folder / query
            own.mkdir(exist_ok=True)
            part = own / f".{_KEPT}"
            part.write_bytes(msgspec.msgpack.encode(_Kept(encode_plan(plan), begins)))
            part.replace(own / _KEPT)
            self._begin(query, plan, begins)

    def _begin(self, query: str, plan: Node, begins: int | None) -> None:
        self._queries[query] = NativeQuery(
            self._folder / query, plan, begins, self._spark, lambda: self.changed()
        )

    def drop(self, query: str) -> None:
        with self._lock:
            found = self._queries.pop(query, None)
        if found is not None:
            self._ended += found.seconds
            found.remove()

    def queries(self) -> list[str]:
        with self._lock:
            return sorted(self._queries)

    def fed(self, query: str, stream: str) -> int:
        return self._found(query).fed(stream)

    def feed(self, query: str, stream: str, piece: Piece) -> None:
        self._found(query).feed(stream, piece)

    def publish(self, query: str, since: int) -> Iterator[Piece]:
        return self._found(query).publish(since)

    def forget(self, query: str, below: int) -> None:
        self._found(query).forget(below)

    def seconds(self) -> float:
        with self._lock:
            return self._ended + sum(q.seconds for q in self._queries.values())

    def close(self) -> None:
        with self._lock:
            for query in self._queries.values():
                query.stop()
            for query in self._queries.values():
                query.close()
            self._queries.clear()
        if self._owns_spark:
            with suppress(Exception):  # it may be gone already
                self._spark.stop()

    def _found(self, query: str) -> NativeQuery:
        with self._lock:
            if query not in self._queries:
                raise EngineError(f"{query} was not added, or was dropped")
            return self._queries[query]
