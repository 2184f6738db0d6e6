"""One task of a tick: a slice of the hash space, all queries.

A tick's Spark job has P tasks. Each evaluates every operator on the rows that it owns; rows whose
key belongs to another task go there between two levels (`physical.level`). With P = 1 nothing
moves. What a task learns and writes is returned as a `TaskReport`; the driver commits it.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import polars as pl
from msgspec import structs

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.frames import (
    POS,
    TS,
    H,
    aligned,
    concat,
    data_schema,
    empty_relation,
    empty_stream,
)
from thalweg.engine.shared.state.hashing import key_hashes
from thalweg.engine.shared.state.names import Table, state_table, stem_table
from thalweg.engine.shared.state.segments import (
    BundleWriter,
    Mapped,
    Segment,
    SegmentReader,
    read_section,
    unpacked,
)
from thalweg.engine.shared.tick.messages import (
    LANDED,
    NewTuples,
    ShapeSpec,
    TaskReport,
    TickSpec,
)
from thalweg.engine.shared.tick.plan import Flow, Plan
from thalweg.plan.buckets import SPACE, even
from thalweg.plan.windows import BEGINNING

R = TypeVar("R")

READER = SegmentReader()
FEW = 1 << 18  # bytes of all that a task writes, to go into one file

Kernels = Mapping[type, Callable[["Task", Flow, Any], pl.DataFrame]]


class Task:
    """The state of one task while it runs; kernels get it as their first argument."""

    def __init__(
        self, spec: TickSpec, plan: Plan, kernels: Kernels, number: int, level: int
    ) -> None:
        self.spec, self.plan, self.number, self.level = spec, plan, number, level
        self._kernels = kernels
        self.began, self._began_cpu = time.perf_counter(), time.process_time()
        starts = (*(spec.starts or even(spec.tasks)), SPACE)
        self.ranges = [(a, b - 1) for a, b in pairwise(starts)]  # of all tasks
        self.low, self.high = self.ranges[number]
        # A task that is tried again writes files of its own: the first try's may still be mapped.
        bundle = f"{spec.tick:010d}-{level}-{number}-{uuid.uuid4().hex[:8]}.arrow"
        self.writer = BundleWriter(spec.files / "segments", bundle)
        # Results live as long as somebody may read them, state as long as it is needed. So they are
        # apart, but for few: one file is sooner durable than two, and keeps little for too long.
        self.results = BundleWriter(spec.files / "results", bundle, few=FEW)
        pushed = structs.replace(spec.files / "pushed", durable=False)
        self.pushed = BundleWriter(pushed, bundle, few=FEW)
        self.report = TaskReport([], [], [], [], {})
        self.inbox: dict[str, list[pl.DataFrame]] = {}
        self._memo: dict[Any, Any] = {}
        self._by_table: dict[str, list[Segment]] = {}
        for segment in spec.segments:
            self._by_table.setdefault(segment.table, []).append(segment)

    def fetch(self) -> None:
        """Have the state that it may need here, where it comes from a store."""
        if not self.spec.files.store:
            return
        of = self.spec.segments
        mine = {s.bundle for s in of if s.first <= self.high and s.last >= self.low}
        (self.spec.files / "segments").fetch(mine)

    def evaluate(self, flow: Flow, op: ph.AnyOp) -> pl.DataFrame:
        """The operator's delta for the instants that become final in this tick."""
        key = (flow.name, self.plan.name_of(op))
        return self.once(key, lambda: self._evaluate(flow, op))

    def _evaluate(self, flow: Flow, op: ph.AnyOp) -> pl.DataFrame:
        if not self.is_alone and not ph.is_from_streams(op) and self.plan.level_of(op) < self.level:
            # Computed at an earlier level, by this task's predecessor, and handed on.
            is_stream = isinstance(op, ph.StreamOf | ph.TolerantOf | ph.PlacedOf | ph.DueOf)
            empty = empty_stream if is_stream else empty_relation
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
    def cpu_s(self) -> float:
        """Of this process since the task began; a worker has one task at a time."""
        return time.process_time() - self._began_cpu

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

    def own_between(self, table: str, low: int, high: int) -> list[Mapped]:
        """The same, without those that have no hash of this task's."""
        found = self._by_table.get(table, ())
        return [
            self.read(s)
            for s in found
            if s.high >= low and s.low < high and s.first <= self.high and s.last >= self.low
        ]

    def segments_of(self, table: str) -> list[Segment]:
        return self._by_table.get(table, [])

    def read(self, segment: Segment) -> Mapped:
        return READER.read(self.spec.files / "segments", segment)

    def may_merge(self, segment: Segment) -> bool:
        """Whether this task alone may replace the segment: no other task's keys are in it."""
        return self.low <= segment.first and segment.last <= self.high

    def forget(self, segments: list[Segment]) -> None:
        self.report.removed.extend(s.key for s in segments)

    def close(self) -> TaskReport:
        """Make durable what it has written; gives what it has done."""
        said = (self.results, self.pushed)
        if all(w.is_few for w in said) and self.writer.size + sum(w.size for w in said) <= FEW:
            for writer in said:
                self.writer.take_over(writer)
        self.report.added = self.writer.close()
        self.report.results = self.results.close()
        self.report.pushed = self.pushed.close()
        self.report.cpu_s = self.cpu_s
        self.report.busy_s = time.perf_counter() - self.began
        return self.report

    # --- what is new

    def landed(self, stream: str) -> pl.DataFrame:
        """The stream's tuples that arrived since the last tick, in order of arrival."""
        return self.once(("landed", stream), lambda: self._read_landed(stream))

    def _read_landed(self, stream: str) -> pl.DataFrame:
        empty = self.empty_tuples(stream)
        new = self.spec.landed.get(stream, ())
        return concat([self._whole(n, empty) for n in new], empty)

    def _whole(self, new: NewTuples, like: pl.DataFrame) -> pl.DataFrame:
        if new.content is None:
            rows = read_section(self.spec.files / LANDED, new.section)
        else:
            rows = unpacked(new.content)
        return _in_place(aligned(rows, like), new)

    def landed_by(self, stream: str, table: Table) -> tuple[list[pl.DataFrame], pl.DataFrame]:
        """Of the new tuples, those that this task owns by a SteM's hash, with `_h`, from where they
        lie in the order of that SteM; and all tuples that do not."""
        empty = self.empty_tuples(stream)
        hashed = empty.with_columns(pl.Series(H, [], dtype=pl.UInt64))
        own, rest = [], []
        for new in self.spec.landed.get(stream, ()):
            section = new.divided.get(table)
            if section is None:
                rest.append(self._whole(new, empty))
                continue
            rows = aligned(read_section(self.spec.files / LANDED, section), hashed)
            hashes = rows[H].to_numpy()
            first = int(np.searchsorted(hashes, np.uint64(self.low)))
            last = int(np.searchsorted(hashes, np.uint64(self.high), side="right"))
            own.append(_in_place(rows.slice(first, last - first), new))
        return own, concat(rest, empty)

    def empty_tuples(self, stream: str) -> pl.DataFrame:
        """No tuples, in the columns that new ones have."""
        schema = self.stream_schema(stream)
        if stream in self.plan.signed:
            schema["_w"] = pl.Int64
        return pl.DataFrame(schema=schema)

    def stream_schema(self, stream: str) -> dict[str, Any]:
        """A stream's tuples as tasks see them."""
        data = data_schema(self.plan.types[stream])
        kept = self.plan.kept[stream]
        own = {c: t for i, (c, t) in enumerate(data.items()) if i in kept}
        return {**own, TS: pl.Int64, POS: pl.Int64}

    def once(self, key: Any, make: Callable[[], R]) -> R:
        """Computed at most once in this task."""
        if key not in self._memo:
            self._memo[key] = make()
        found: R = self._memo[key]
        return found

    def log_table(self, stream: str) -> str:
        """A table that has all the stream's stored tuples."""
        table = stem_table(stream, self.plan.stems[stream][0])
        source, fresh = self.spec.backfill.get(stream, (table, []))
        return source if table in fresh else table

    # --- probing

    def order(self, op: ph.Join, start: int) -> list[int]:
        """In which order one input's delta probes the others."""
        return self.spec.orders[self.plan.name_of(op)][start]

    def shape(self, flow: Flow, op: ph.Join) -> ShapeSpec | None:
        """What a join keeps beside windows; None: nothing."""
        return self.spec.shapes.get(self.plan.place_of(flow, op))

    def record(self, op: ph.Join, start: int, target: int, probed: int, matched: int) -> None:
        counts = self.report.matches.setdefault(f"{self.plan.name_of(op)}/{start}/{target}", [0, 0])
        counts[0] += probed
        counts[1] += matched

    # --- tables' names

    def state_table(self, flow: Flow, op: ph.AnyOp, part: str = "state") -> Table:
        return state_table(flow.name, self.plan.name_of(op), part)


def _in_place(rows: pl.DataFrame, new: NewTuples) -> pl.DataFrame:
    if new.shift:
        rows = rows.with_columns(pl.col(POS) + new.shift)
    return rows if new.floor == BEGINNING else rows.filter(pl.col(TS) >= new.floor)


def carried(task: Task, flow: Flow, op: ph.AnyOp) -> str:
    """The channel in which a task leaves an operator's rows for itself at the next level."""
    return f"carry/{flow.name}/{task.plan.name_of(op)}"
