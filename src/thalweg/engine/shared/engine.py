"""The shared engine: definitions in, batches in, ticks, changelogs out.

    cut -> write down -> run -> deliver -> commit

A tick takes a consistent cut over what has landed, decides how far each flow may go, writes that
down, has its tasks run, delivers the results, and commits everything in one transaction.
"""

from __future__ import annotations

import hashlib
import pickle
import threading
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import msgspec
import polars as pl

from thalweg.engine.shared import commit
from thalweg.engine.shared import physical as ph
from thalweg.engine.shared.compile import compile_query
from thalweg.engine.shared.cut import Cut, make_cut, watermark
from thalweg.engine.shared.executors import Executor, InProcess
from thalweg.engine.shared.frames import FOREVER
from thalweg.engine.shared.ingest import Landing, Receipt
from thalweg.engine.shared.kernels.join import probing_order
from thalweg.engine.shared.planning import Registered, Stems, floor_of, make_plan
from thalweg.engine.shared.results import Emission, NoOutlet, Outlet, Results
from thalweg.engine.shared.runner import read_report
from thalweg.engine.shared.segments import Segment
from thalweg.engine.shared.store import Store
from thalweg.engine.shared.task import BEGINNING, Plan, TaskReport, TickSpec, stem_table
from thalweg.plan.catalog import QueryDef, StreamDef
from thalweg.plan.nodes import base_streams, check_output, resolution_us

ROWS_FOR_MORE_TASKS = 50_000  # below this, one task is quicker than several and a shuffle
RETAINED_TICKS = 1_000


@dataclass(frozen=True)
class Tick:
    """What a tick did, for people and for statistics."""

    number: int
    rows_in: int
    rows_out: int
    seconds: float
    tasks: int
    by_query: Mapping[str, float]  # seconds of the tasks' time, by query
    by_phase: Mapping[str, float]  # seconds of the tick's time; `_phases` names them


class SharedEngine:
    """One data directory, one driver; every query of it in each tick.

    Batches may be pushed from any thread. Definitions and ticks exclude each other.
    """

    def __init__(
        self,
        folder: Path,
        executor: Executor | None = None,
        *,
        outlet: Outlet | None = None,
        durable: bool = True,
        rows_for_more_tasks: int = ROWS_FOR_MORE_TASKS,
        retained_ticks: int = RETAINED_TICKS,
    ) -> None:
        self.store = Store(folder, durable=durable)
        self.folder = folder.resolve()
        self.executor = executor or InProcess()
        self.landing = Landing(self.store, durable=durable)
        self.results = Results(self.folder)
        self.outlet = outlet or NoOutlet()
        self.streams: dict[str, StreamDef] = {}
        self.queries: dict[str, Registered] = {}
        self.retained_ticks = retained_ticks
        self._durable = durable
        self._rows_for_more_tasks = rows_for_more_tasks
        self._lock = threading.RLock()
        self._segments = {s.key: s for s in self.store.segments("segments")}
        self._plan: Plan | None = None
        for part in ("segments", "plans"):
            (self.folder / part).mkdir(exist_ok=True)

    def close(self) -> None:
        with self._lock:
            self.store.close()

    # --- definitions

    def add_stream(self, stream: StreamDef) -> None:
        with self._lock:
            self.streams[stream.name] = stream

    def add_queries(self, queries: Iterable[QueryDef]) -> list[Registered]:
        """Register queries; they take part from the next tick on, and begin together.

        A query that the book knows (after a restart) goes on where it was.
        """
        with self._lock:
            made = [self._registered(q) for q in queries]
            self.store.write_queries((q.name, q.epoch, q.started, dict(q.horizons)) for q in made)
            self.queries.update((q.name, q) for q in made)
            self._plan = None
            return made

    def drop_query(self, name: str) -> None:
        with self._lock:
            self.store.delete_query(name)
            del self.queries[name]
            self._plan = None

    def _registered(self, query: QueryDef) -> Registered:
        check_output(query.plan)
        resolution_us(query.plan)
        for stream in base_streams(query.plan):
            self.streams.setdefault(stream.name, stream)
        output = compile_query(query.plan)
        columns = tuple(f.name for f in query.plan.schema)
        known = self.store.query(query.name)
        if known is not None:
            epoch, started, horizons = known
            return Registered(query.name, columns, output, epoch, started, _pairs(horizons))
        streams = sorted(ph.base_names(output))
        now = min(self.watermark(s) for s in streams)
        started = now if BEGINNING < now < FOREVER else None
        if query.from_now and started is not None:
            horizons = dict.fromkeys(streams, started)
        else:
            horizons = {s: self.store.complete_from(s) for s in streams}
        epoch = self.store.tick()[0] + 1
        return Registered(query.name, columns, output, epoch, started, _pairs(horizons))

    # --- time

    def watermark(self, stream: str) -> int:
        """As of the last tick: no tuple below it will be accepted any more."""
        cuts = self.store.all("SELECT cut FROM partitions WHERE stream = ?", stream)
        return watermark(self.streams[stream], [c for (c,) in cuts])

    # --- input

    def push(self, stream: str, batch: pl.DataFrame, **options: object) -> Receipt:
        return self.landing.push(self.streams[stream], batch, **options)  # type: ignore[arg-type]

    def finish(self, stream: str) -> None:
        self.landing.finish(self.streams[stream])

    # --- ticks

    def tick(self, *, limit: int | None = None, idle: frozenset[str] = frozenset()) -> Tick | None:
        """One round over all new data, at most `limit` tuples; None if there is nothing to do.

        `idle` names streams that have been silent for too long to be waited for. A tick that a
        crash interrupted is run again as it was written down.
        """
        with self._lock:
            began = time.perf_counter()
            number, record = self.store.tick()
            if record is None:
                cut = make_cut(
                    self.store,
                    self.plan,
                    self.streams,
                    {name: q.started for name, q in self.queries.items()},
                    limit=limit,
                    idle=idle,
                    tasks=self.executor.tasks,
                    rows_for_more_tasks=self._rows_for_more_tasks,
                )
                if cut is None:
                    return None
                self.store.write_tick(number + 1, msgspec.msgpack.encode(cut))
            else:
                cut = msgspec.msgpack.decode(record, type=Cut)
            return self._run(cut, began)

    def run_to_end(self, *, limit: int | None = None) -> list[Tick]:
        """Ticks until nothing is left to do."""
        done = []
        while (tick := self.tick(limit=limit)) is not None:
            done.append(tick)
        return done

    @property
    def plan(self) -> Plan:
        if self._plan is None:
            self._plan = make_plan(self.queries.values(), self.streams, self._stems())
        return self._plan

    def _stems(self) -> Stems:
        found: Stems = {}
        for stream, keys in self.store.all("SELECT stream, keys FROM stems ORDER BY stream, place"):
            found[stream] = (*found.get(stream, ()), pickle.loads(keys))
        return found

    def _plan_of(self, cut: Cut) -> Plan:
        """The plan that the cut was made for: after a crash, newer queries have to wait."""
        if cut.queries == sorted(self.queries):
            return self.plan
        then = [self.queries[name] for name in cut.queries if name in self.queries]
        return make_plan(then, self.streams, self._stems())

    def _run(self, cut: Cut, began: float) -> Tick:
        plan = self._plan_of(cut)
        floors = self._floors(cut, plan)
        marks = [began, time.perf_counter()]
        reports = self._execute(cut, plan, floors)
        marks.append(time.perf_counter())
        rows_out = self._emit(cut.number, reports)
        marks.append(time.perf_counter())
        self._segments = commit.commit(self, plan, cut, floors, reports)
        marks.append(time.perf_counter())
        return Tick(
            cut.number,
            max((r.rows_in for r in reports), default=0),
            rows_out,
            marks[-1] - began,
            cut.tasks,
            _added([r.seconds for r in reports]),
            _phases(marks, sum(r.busy_s for r in reports) / cut.tasks),
        )

    def rehearse(self, cut: Cut, names: Collection[str]) -> None:
        """Run a tick for some of its queries only and forget what comes of it; raises as it would.

        What it writes is listed nowhere, and the tick itself writes over it.
        """
        with self._lock:
            plan = make_plan([self.queries[n] for n in names], self.streams, self._stems())
            self._execute(cut, plan, self._floors(cut, plan))

    def _floors(self, cut: Cut, plan: Plan) -> dict[str, int]:
        reached = {flow: upto for flow, (_, upto) in cut.ranges.items()}
        return {s: floor_of(s, plan.flows, reached) for s in plan.stems}

    def _execute(self, cut: Cut, plan: Plan, floors: dict[str, int]) -> list[TaskReport]:
        files = commit.landed_files(self.store, cut)
        spec = TickSpec(
            folder=str(self.folder),
            tick=cut.number,
            tasks=cut.tasks,
            plan=self._plan_file(plan),
            ranges=cut.ranges,
            landed={s: of for s, of in files.items() if s in plan.stems},
            segments=list(self._segments.values()),
            orders=self._orders(plan),
            floors=floors,
            started={n: q.started for n, q in self.queries.items() if q.started is not None},
            backfill=self._backfill(plan),
            durable=self._durable,
        )
        levels = 1 + max((plan.level_of(o) for f in plan.flows for _, o in f.outputs), default=0)
        packed = self.executor.run(msgspec.msgpack.encode(spec), cut.tasks, levels)
        return [read_report(r) for r in packed]

    def _emit(self, number: int, reports: list[TaskReport]) -> int:
        segments = [s for r in reports for s in r.results]
        columns = {name: q.columns for name, q in self.queries.items()}
        emissions = self.results.emissions(number, segments, columns)
        self.outlet.deliver(emissions)
        return sum(e.rows.height for e in emissions)

    def emissions_after(self, query: str, tick: int = 0) -> list[Emission]:
        """What a query said in the retained ticks after this one."""
        with self._lock:
            columns = {query: self.queries[query].columns}
            by_tick: dict[int, list[Segment]] = {}
            for number, segment in self.store.results(query, tick):
                by_tick.setdefault(number, []).append(segment)
            return [
                e
                for number, segments in sorted(by_tick.items())
                for e in self.results.emissions(number, segments, columns)
            ]

    def _backfill(self, plan: Plan) -> dict[str, tuple[str, list[str]]]:
        present = self._stems()
        found = {}
        for stream, keys in plan.stems.items():
            old = [stem_table(stream, k) for k in present.get(stream, ())]
            fresh = [t for k in keys if (t := stem_table(stream, k)) not in old]
            if old and fresh:
                found[stream] = (old[0], fresh)
        return found

    def _orders(self, plan: Plan) -> dict[str, list[list[int]]]:
        """Each join's probing orders, by the fan-outs seen so far."""
        fanouts: dict[str, dict[tuple[int, int], float]] = {}
        for probe, fanout in self.store.all("SELECT probe, fanout FROM fanouts"):
            join, start, target = probe.split("/")
            fanouts.setdefault(join, {})[int(start), int(target)] = fanout
        joins = {
            plan.name_of(op): op
            for flow in plan.flows
            for _, output in flow.outputs
            for op in ph.walk(output)
            if isinstance(op, ph.Join)
        }
        return {
            name: [probing_order(op, i, fanouts.get(name, {})) for i in range(len(op.inputs))]
            for name, op in joins.items()
        }

    def _plan_file(self, plan: Plan) -> str:
        packed = pickle.dumps(plan)
        name = hashlib.blake2b(packed, digest_size=8).hexdigest()
        path = self.folder / "plans" / f"{name}.plan"
        if not path.exists():
            partial = path.with_suffix(".partial")
            partial.write_bytes(packed)
            partial.rename(path)
        return str(path)


def _pairs(horizons: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple((s, h) for s, h in sorted(horizons.items()) if h > BEGINNING)


def _phases(marks: Sequence[float], busy_s: float) -> dict[str, float]:
    """Where a tick's time went; what its tasks did not use of the run is the executor's own."""
    cut, run, deliver, done = (b - a for a, b in pairwise(marks))
    tasks = min(busy_s, run)
    return {
        "cut": cut,
        "tasks": tasks,
        "executor": run - tasks,
        "deliver": deliver,
        "commit": done,
    }


def _added(parts: Sequence[Mapping[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for part in parts:
        for name, seconds in part.items():
            total[name] = total.get(name, 0.0) + seconds
    return total
