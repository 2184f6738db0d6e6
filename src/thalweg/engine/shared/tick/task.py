"""One task of a tick: a slice of the hash space, all queries.

A tick's Spark job has P tasks. Each evaluates every operator on the rows that it owns; rows whose
key belongs to another task go there between two levels (`physical.level`). With P = 1 nothing
moves. What a task learns and writes is returned as a `TaskReport`; the driver commits it.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.frames import (
    POS,
    TS,
    H,
    concat,
    data_schema,
    empty_relation,
    empty_stream,
)
from thalweg.engine.shared.state.hashing import key_hashes
from thalweg.engine.shared.state.segments import (
    BundleWriter,
    Mapped,
    Segment,
    SegmentReader,
    read_frame,
)
from thalweg.plan.expr import Expr

BEGINNING = -(1 << 62)
HASH_SPACE = 1 << 64


class GroupSpec(msgspec.Struct, frozen=True):
    """What a group's members want in a tick."""

    windows: list[tuple[int, ...]]  # the different ones, as lengths leaf by leaf; -1: unbounded
    families: str | None  # the file with the families whose rows are pushed


class TickSpec(msgspec.Struct, frozen=True):
    """All that a task needs to know of a tick; made by the driver, the same for every task."""

    folder: str
    tick: int
    tasks: int
    plan: str  # the file that holds the plan; a worker reads it once
    ranges: dict[str, tuple[int, int]]  # flow -> the instants [from, upto) that become final
    landed: dict[str, list[str]]  # stream -> files with its new tuples, in order
    segments: list[Segment]
    orders: dict[str, list[list[int]]]  # join -> for each input, the order in which to probe
    floors: dict[str, int]  # stream -> instants below are not needed any more
    started: dict[str, int]  # query -> the instant from which its result counts
    backfill: dict[str, tuple[str, list[str]]]  # stream -> a SteM, and new ones to fill from it
    groups: dict[str, GroupSpec]
    shares: tuple[tuple[str, ...], ...] = ()  # of runs by task, where one task has all rows
    durable: bool = True


class TaskReport(msgspec.Struct):
    """What a task did: new segments, segments that these replace, and what it saw."""

    added: list[Segment]
    removed: list[tuple[str, int]]
    results: list[Segment]  # tables are queries, `group/…`, or `rejected/<relation>`
    pushed: list[Segment]  # tables are families, `group/…/<place>`; gone with the tick
    matches: dict[str, list[int]]  # "join/input/target" -> [rows that probed, rows that matched]
    rows_in: int = 0
    busy_s: float = 0.0
    seconds: dict[str, float] = msgspec.field(default_factory=dict)


@dataclass(frozen=True)
class Flow:
    """Queries over the same base streams that started together: they share a frontier."""

    name: str
    streams: tuple[str, ...]
    outputs: tuple[tuple[str, ph.Ending], ...]  # of queries, and of groups
    horizons: tuple[tuple[str, int], ...] = ()  # tuples before these instants do not count

    def horizon(self, stream: str) -> int:
        return dict(self.horizons).get(stream, BEGINNING)


@dataclass(frozen=True)
class Plan:
    """All flows, and the keys by which each stream's SteMs are indexed."""

    flows: tuple[Flow, ...]
    stems: dict[str, tuple[tuple[Expr, ...], ...]]
    types: dict[str, tuple]
    kept: dict[str, frozenset[int]]  # of each stream's columns, those that somebody looks at
    signed: frozenset[str] = frozenset()
    names: dict[int, str] = field(default_factory=dict, compare=False)
    levels: dict[int, int] = field(default_factory=dict, compare=False)
    memo: dict[str, Any] = field(default_factory=dict, compare=False)  # what ticks worked out

    def __getstate__(self) -> dict[str, Any]:
        # Names and levels are kept by object identity, which another process does not share.
        return {**self.__dict__, "names": {}, "levels": {}, "memo": {}}

    def name_of(self, op: ph.AnyOp) -> str:
        """`op_id`, computed once per operator object."""
        found = self.names.get(id(op))
        if found is None:
            found = self.names[id(op)] = ph.op_id(op)
        return found

    def level_of(self, op: ph.AnyOp) -> int:
        found = self.levels.get(id(op))
        if found is None:
            found = self.levels[id(op)] = ph.level(op)
        return found


READER = SegmentReader()

Kernels = Mapping[type, Callable[["Task", Flow, Any], pl.DataFrame]]


class Task:
    """The state of one task while it runs; kernels get it as their first argument."""

    def __init__(
        self, spec: TickSpec, plan: Plan, kernels: Kernels, number: int, level: int
    ) -> None:
        self.spec, self.plan, self.number, self.level = spec, plan, number, level
        self._kernels = kernels
        self.began = time.perf_counter()
        self.folder = Path(spec.folder)
        self.low = HASH_SPACE * number // spec.tasks
        self.high = HASH_SPACE * (number + 1) // spec.tasks - 1
        # A task that is tried again writes files of its own: the first try's may still be mapped.
        bundle = f"{spec.tick:010d}-{level}-{number}-{uuid.uuid4().hex[:8]}.arrow"
        self.writer = BundleWriter(self.folder / "segments", bundle, durable=spec.durable)
        # Results live as long as somebody may read them, state as long as it is needed.
        self.results = BundleWriter(self.folder / "results", bundle, durable=spec.durable)
        self.pushed = BundleWriter(self.folder / "pushed", bundle, durable=False)
        self.report = TaskReport([], [], [], [], {})
        self.inbox: dict[str, list[pl.DataFrame]] = {}
        self.outbox: dict[str, tuple[tuple[Expr, ...] | None, pl.DataFrame]] = {}
        self._memo: dict[Any, Any] = {}
        self._by_table: dict[str, list[Segment]] = {}
        for segment in spec.segments:
            self._by_table.setdefault(segment.table, []).append(segment)

    def evaluate(self, flow: Flow, op: ph.AnyOp) -> pl.DataFrame:
        """The operator's delta for the instants that become final in this tick."""
        key = (flow.name, self.plan.name_of(op))
        return self.once(key, lambda: self._evaluate(flow, op))

    def _evaluate(self, flow: Flow, op: ph.AnyOp) -> pl.DataFrame:
        if not self.is_alone and not ph.is_from_streams(op) and self.plan.level_of(op) < self.level:
            # Computed at an earlier level, by this task's predecessor, and handed on.
            empty = empty_stream if isinstance(op, ph.StreamOf) else empty_relation
            return concat(self.inbox.get(carried(self, flow, op), []), empty(op.types))
        return self._kernels[type(op)](self, flow, op)

    # --- time and ownership

    def range_of(self, flow: Flow) -> tuple[int, int]:
        return self.spec.ranges[flow.name]

    def owned(self, frame: pl.DataFrame, keys: list[pl.Expr]) -> pl.DataFrame:
        """The rows whose key this task owns."""
        if self.spec.tasks == 1 or not frame.height:
            return frame
        hashes = key_hashes(frame, keys)
        return frame.filter((hashes >= self.low) & (hashes <= self.high))

    def owns_hash(self, column: str = H) -> pl.Expr:
        return pl.col(column).is_between(self.low, self.high)

    @property
    def is_alone(self) -> bool:
        return self.spec.tasks == 1

    # --- what is stored

    def stored(self, table: str) -> list[Mapped]:
        """The table's segments as of the last tick."""
        return [self.read(s) for s in self._by_table.get(table, ())]

    def stored_between(self, table: str, low: int, high: int) -> list[Mapped]:
        """Those whose instants overlap [low, high)."""
        found = self._by_table.get(table, ())
        return [self.read(s) for s in found if s.high >= low and s.low < high]

    def segments_of(self, table: str) -> list[Segment]:
        return self._by_table.get(table, [])

    def read(self, segment: Segment) -> Mapped:
        return READER.read(self.folder / "segments", segment)

    def may_merge(self, segment: Segment) -> bool:
        """Whether this task alone may replace the segment: no other task's keys are in it."""
        return self.low <= segment.first and segment.last <= self.high

    def forget(self, segments: list[Segment]) -> None:
        self.report.removed.extend(s.key for s in segments)

    # --- what is new

    def landed(self, stream: str) -> pl.DataFrame:
        """The stream's tuples that arrived since the last tick, in order of arrival."""
        return self.once(("landed", stream), lambda: self._read_landed(stream))

    def _read_landed(self, stream: str) -> pl.DataFrame:
        files = [self.folder / f for f in self.spec.landed.get(stream, ())]
        schema = self.stream_schema(stream)
        if stream in self.plan.signed:
            schema["_w"] = pl.Int64
        frames = [read_frame(f).select(list(schema)) for f in files]
        frame = concat(frames, pl.DataFrame(schema=schema))
        self.report.rows_in += frame.height
        return frame

    def stream_schema(self, stream: str) -> dict[str, Any]:
        """A stream's tuples as tasks see them."""
        data = data_schema(self.plan.types[stream])
        kept = self.plan.kept[stream]
        own = {c: t for i, (c, t) in enumerate(data.items()) if i in kept}
        return {**own, TS: pl.Int64, POS: pl.Int64}

    def once(self, key: Any, make: Any) -> Any:
        """Computed at most once in this task."""
        if key not in self._memo:
            self._memo[key] = make()
        return self._memo[key]

    def log_table(self, stream: str) -> str:
        """A table that has all the stream's stored tuples."""
        table = stem_table(stream, self.plan.stems[stream][0])
        source, fresh = self.spec.backfill.get(stream, (table, []))
        return source if table in fresh else table

    # --- probing

    def order(self, op: ph.Join, start: int) -> list[int]:
        """In which order one input's delta probes the others."""
        return self.spec.orders[self.plan.name_of(op)][start]

    def saw(self, op: ph.Join, start: int, target: int, probed: int, matched: int) -> None:
        counts = self.report.matches.setdefault(f"{self.plan.name_of(op)}/{start}/{target}", [0, 0])
        counts[0] += probed
        counts[1] += matched

    # --- tables' names

    def state_table(self, flow: Flow, op: ph.AnyOp, part: str = "state") -> str:
        return f"{flow.name}/{self.plan.name_of(op)}/{part}"


def stem_table(stream: str, keys: tuple[Expr, ...]) -> str:
    """The SteM of a stream indexed by `keys`; no keys is the plain log."""
    return f"stem/{stream}/{ph.key_label(keys)}"


def carried(task: Task, flow: Flow, op: ph.AnyOp) -> str:
    """The channel in which a task leaves an operator's rows for itself at the next level."""
    return f"carry/{flow.name}/{task.plan.name_of(op)}"
