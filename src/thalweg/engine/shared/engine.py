"""The shared engine: definitions in, batches in, ticks, changelogs out.

    cut -> write down -> run -> deliver -> commit

A tick takes a consistent cut over what has landed, decides how far each flow may go, writes that
down, has its tasks run, delivers the results, and commits everything in one transaction.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec
import polars as pl

from thalweg.engine.shared import physical as ph
from thalweg.engine.shared.compile import compile_query
from thalweg.engine.shared.executors import Executor, InProcess
from thalweg.engine.shared.frames import FOREVER, TS, names
from thalweg.engine.shared.ingest import Landing, Receipt
from thalweg.engine.shared.kernels.join import probing_order
from thalweg.engine.shared.kernels.output import OP
from thalweg.engine.shared.kernels.streams import slides_below
from thalweg.engine.shared.planning import Registered, floor_of, make_plan
from thalweg.engine.shared.runner import read_report
from thalweg.engine.shared.segments import Segment, SegmentReader
from thalweg.engine.shared.store import Store
from thalweg.engine.shared.task import BEGINNING, Flow, Plan, TaskReport, TickSpec, stem_table
from thalweg.plan.catalog import QueryDef, StreamDef

ROWS_FOR_MORE_TASKS = 50_000  # below this, one task is quicker than several and a shuffle
SMOOTHING = 0.3  # weight of the newest observation of a fan-out


@dataclass(frozen=True)
class Emission:
    """What one query says in one tick, in canonical order: `_ts`, `_op`, `c0`, …"""

    query: str
    tick: int
    rows: pl.DataFrame


@dataclass(frozen=True)
class Tick:
    number: int
    rows_in: int
    rows_out: int
    seconds: float
    tasks: int


Deliver = Callable[[Emission], None]


class SharedEngine:
    """One data directory, one driver; every query of it in each tick."""

    def __init__(
        self,
        folder: Path,
        executor: Executor | None = None,
        *,
        deliver: Deliver | None = None,
        durable: bool = True,
        rows_for_more_tasks: int = ROWS_FOR_MORE_TASKS,
    ) -> None:
        self.store = Store(folder, durable=durable)
        self.folder = folder.resolve()
        self.executor = executor or InProcess()
        self.landing = Landing(self.store, durable=durable)
        self.streams: dict[str, StreamDef] = {}
        self.queries: dict[str, Registered] = {}
        self._deliver = deliver or (lambda emission: None)
        self._durable = durable
        self._rows_for_more_tasks = rows_for_more_tasks
        self._reader = SegmentReader()
        self._segments = {s.key: s for s in self.store.segments()}
        self._plan: Plan | None = None
        (self.folder / "segments").mkdir(exist_ok=True)
        (self.folder / "plans").mkdir(exist_ok=True)

    # --- definitions

    def add_stream(self, stream: StreamDef) -> None:
        self.streams[stream.name] = stream

    def add_query(self, query: QueryDef) -> Registered:
        """Register a query; it takes part from the next tick on."""
        return self.add_queries([query])[0]

    def add_queries(self, queries: Iterable[QueryDef]) -> list[Registered]:
        made = [self._registered(q) for q in queries]
        with self.store.transaction() as db:
            for q in made:
                db.execute(
                    "INSERT OR REPLACE INTO queries VALUES (?, ?, ?, ?)",
                    (q.name, q.epoch, q.started, msgspec.msgpack.encode(dict(q.horizons))),
                )
        self.queries.update((q.name, q) for q in made)
        self._plan = None
        return made

    def drop_query(self, name: str) -> None:
        with self.store.transaction() as db:
            db.execute("DELETE FROM queries WHERE name = ?", (name,))
        del self.queries[name]
        self._plan = None

    def _registered(self, query: QueryDef) -> Registered:
        """A new query begins at the next tick; one that the book knows goes on where it was."""
        output = compile_query(query.plan)
        streams = sorted(ph.base_names(output))
        known = self.store.all(
            "SELECT epoch, started, horizons FROM queries WHERE name = ?", query.name
        )
        if known:
            epoch, started, packed = known[0]
            horizons = msgspec.msgpack.decode(packed, type=dict[str, int])
            return Registered(query.name, output, epoch, started, tuple(sorted(horizons.items())))
        now = min(self.watermark(s) for s in streams)
        started = now if BEGINNING < now < FOREVER else None
        horizons = {s: self._complete_from(s) for s in streams}
        if query.from_now and started is not None:
            horizons = dict.fromkeys(streams, started)
        kept = tuple((s, h) for s, h in sorted(horizons.items()) if h > BEGINNING)
        return Registered(query.name, output, self.store.tick()[0] + 1, started, kept)

    def _complete_from(self, stream: str) -> int:
        rows = self.store.all("SELECT complete_from FROM floors WHERE stream = ?", stream)
        return rows[0][0] if rows else BEGINNING

    # --- time

    def watermark(self, stream: str) -> int:
        """As of the last cut: no tuple below it will be accepted any more."""
        cuts = self.store.all("SELECT cut FROM partitions WHERE stream = ?", stream)
        return _watermark(self.streams[stream], [c for (c,) in cuts])

    # --- input

    def push(self, stream: str, batch: pl.DataFrame, **options: object) -> Receipt:
        return self.landing.push(self.streams[stream], batch, **options)  # type: ignore[arg-type]

    def finish(self, stream: str) -> None:
        self.landing.finish(self.streams[stream])

    # --- ticks

    def tick(self, *, limit: int | None = None) -> Tick | None:
        """One round over all new data; None if there is nothing to do.

        A tick that a crash interrupted is run again as it was written down.
        """
        began = time.perf_counter()
        number, record = self.store.tick()
        if record is None:
            cut = self._cut(number + 1, limit)
            if cut is None:
                return None
            record = msgspec.msgpack.encode(cut)
            self.store.write_tick(number + 1, record)
        cut = msgspec.msgpack.decode(record, type=Cut)
        return self._run(cut, began)

    def run_to_end(self, *, limit: int | None = None) -> list[Tick]:
        """Ticks until nothing is left to do."""
        done = []
        while (tick := self.tick(limit=limit)) is not None:
            done.append(tick)
        return done

    def _cut(self, number: int, limit: int | None) -> Cut | None:
        waiting = self.store.all(
            "SELECT id, stream, file, rows, partition, newest FROM landed ORDER BY id"
        )
        taken: list[tuple] = []
        rows = 0
        for entry in waiting:
            if limit is not None and taken and rows + entry[3] > limit:
                break
            taken.append(entry)
            rows += entry[3]
        newest = {
            (s, p): c for s, p, c in self.store.all("SELECT stream, partition, cut FROM partitions")
        }
        for _, stream, _, _, partition, latest in taken:
            newest[stream, partition] = max(newest.get((stream, partition), BEGINNING), latest)
        watermarks = {
            name: _watermark(s, [c for (of, _), c in newest.items() if of == name])
            for name, s in self.streams.items()
        }
        plan = self._current_plan()
        reached = self._frontiers(plan)
        ranges = {}
        for flow in plan.flows:
            upto = max(reached[flow.name], min(watermarks[s] for s in flow.streams))
            started = self._started(flow)
            moves = upto > reached[flow.name] and (started is None or upto > started)
            ranges[flow.name] = (reached[flow.name], upto if moves else reached[flow.name])
        moved = any(low < high for low, high in ranges.values())
        if not taken and not moved:
            return None
        return Cut(
            number,
            [t[0] for t in taken],
            [(s, p, c) for (s, p), c in newest.items()],
            ranges,
            self._task_count(plan, rows, ranges),
        )

    def _task_count(self, plan: Plan, rows: int, ranges: Mapping[str, tuple[int, int]]) -> int:
        """One task where little came, or where RSTREAM must know when the last interval closes."""
        if rows < self._rows_for_more_tasks:
            return 1
        ending = (f for f in plan.flows if ranges[f.name][1] == FOREVER)
        slides = any(slides_below(o) for f in ending for _, o in f.outputs)
        return 1 if slides else self.executor.tasks

    def _started(self, flow: Flow) -> int | None:
        return self.queries[flow.outputs[0][0]].started

    def _frontiers(self, plan: Plan) -> dict[str, int]:
        known = dict(self.store.all("SELECT flow, frontier FROM frontiers"))
        return {f.name: known.get(f.name, BEGINNING) for f in plan.flows}

    def _current_plan(self) -> Plan:
        if self._plan is None:
            self._plan = make_plan(self.queries.values(), self.streams, self._stems())
        return self._plan

    def _stems(self) -> dict:
        found: dict[str, tuple] = {}
        for stream, keys in self.store.all("SELECT stream, keys FROM stems ORDER BY stream, place"):
            found[stream] = (*found.get(stream, ()), pickle.loads(keys))
        return found

    def _run(self, cut: Cut, began: float) -> Tick:
        plan = self._current_plan()
        landed = self._landed(cut)
        floors = self._floors(plan, cut)
        spec = TickSpec(
            folder=str(self.folder),
            tick=cut.number,
            tasks=cut.tasks,
            plan=self._plan_file(plan),
            ranges=cut.ranges,
            landed={s: files for s, files in landed.items() if s in plan.stems},
            segments=[s for s in self._segments.values() if not s.table.startswith("out/")],
            orders=self._orders(plan),
            floors=floors,
            started={n: q.started for n, q in self.queries.items() if q.started is not None},
            backfill=self._backfill(plan),
            durable=self._durable,
        )
        levels = 1 + max((plan.level_of(o) for f in plan.flows for _, o in f.outputs), default=0)
        reports = [
            read_report(r)
            for r in self.executor.run(msgspec.msgpack.encode(spec), cut.tasks, levels)
        ]
        rows_out = self._emit(cut.number, reports)
        self._commit(plan, cut, floors, reports)
        rows_in = max((r.rows_in for r in reports), default=0)
        return Tick(cut.number, rows_in, rows_out, time.perf_counter() - began, cut.tasks)

    def _landed(self, cut: Cut) -> dict[str, list[str]]:
        files: dict[str, list[str]] = {}
        wanted = set(cut.landed)
        for id_, stream, file in self.store.all("SELECT id, stream, file FROM landed ORDER BY id"):
            if id_ in wanted and file is not None:
                files.setdefault(stream, []).append(file)
        return files

    def _floors(self, plan: Plan, cut: Cut) -> dict[str, int]:
        reached = {flow: upto for flow, (_, upto) in cut.ranges.items()}
        found = {s: floor_of(s, plan.flows, reached) for s in plan.stems}
        return {s: f for s, f in found.items() if f is not None}

    def _backfill(self, plan: Plan) -> dict[str, tuple[str, list[str]]]:
        present = self._stems()
        found = {}
        for stream, keys in plan.stems.items():
            old = [stem_table(stream, k) for k in present.get(stream, ())]
            new = [stem_table(stream, k) for k in keys]
            fresh = [t for t in new if t not in old]
            if old and fresh:
                found[stream] = (old[0], fresh)
        return found

    def _orders(self, plan: Plan) -> dict[str, list[list[int]]]:
        fanouts = dict(self.store.all("SELECT probe, fanout FROM fanouts"))
        orders = {}
        for flow in plan.flows:
            for _, output in flow.outputs:
                for op in ph.walk(output):
                    if isinstance(op, ph.Join):
                        name = plan.name_of(op)
                        orders[name] = _orders(op, name, fanouts)
        return orders

    def _plan_file(self, plan: Plan) -> str:
        packed = pickle.dumps(plan)
        import hashlib

        path = self.folder / "plans" / f"{hashlib.blake2b(packed, digest_size=8).hexdigest()}.plan"
        if not path.exists():
            partial = path.with_suffix(".partial")
            partial.write_bytes(packed)
            partial.rename(path)
        return str(path)

    # --- results

    def _emit(self, number: int, reports: list[TaskReport]) -> int:
        parts: dict[str, list[Segment]] = {}
        for report in reports:
            for segment in report.added:
                if segment.table.startswith("out/"):
                    parts.setdefault(segment.table.removeprefix("out/"), []).append(segment)
        total = 0
        for query in sorted(parts):
            rows = self._rows(parts[query])
            total += rows.height
            self._deliver(Emission(query, number, rows))
        return total

    def _rows(self, segments: list[Segment]) -> pl.DataFrame:
        frames = [self._reader.read(self.folder / "segments", s).frame for s in segments]
        if len(frames) == 1:
            return frames[0]
        columns = [c for c in frames[0].columns if c not in (TS, OP)]
        return pl.concat(frames).sort(TS, OP, *columns, nulls_last=False)

    # --- commit

    def _commit(
        self, plan: Plan, cut: Cut, floors: Mapping[str, int], reports: list[TaskReport]
    ) -> None:
        added = [s for r in reports for s in r.added if not s.table.startswith("out/")]
        removed = [tuple(k) for r in reports for k in r.removed]
        kept = {s.key: s for s in (*self._segments.values(), *added)}
        for key in removed:
            kept.pop(key, None)
        dead = [s.key for s in kept.values() if not self._is_needed(s, plan, cut, floors)]
        for key in dead:
            del kept[key]
        new = [s for s in added if s.key in kept]
        gone = [k for k in (*removed, *dead) if k in self._segments]
        files = [f for of in self._landed(cut).values() for f in of]
        with self.store.transaction() as db:
            self.store.change_segments(new, gone)
            db.executemany("DELETE FROM landed WHERE id = ?", [(i,) for i in cut.landed])
            db.executemany(
                "INSERT INTO partitions VALUES (?, ?, ?, ?, 0) ON CONFLICT (stream, partition) "
                "DO UPDATE SET cut = excluded.cut",
                [(s, p, c, c) for s, p, c in cut.newest],
            )
            db.executemany(
                "INSERT OR REPLACE INTO frontiers VALUES (?, ?)",
                [(flow, upto) for flow, (_, upto) in cut.ranges.items()],
            )
            self._commit_floors(db, plan, cut, floors)
            db.execute("DELETE FROM stems")
            db.executemany(
                "INSERT INTO stems VALUES (?, ?, ?)",
                [
                    (s, i, pickle.dumps(k))
                    for s, keys in plan.stems.items()
                    for i, k in enumerate(keys)
                ],
            )
            self._learn(db, reports)
            self.store.write_tick(cut.number, None)
        self._segments = kept
        self._remove_files(files, {k[0] for k in kept}, reports)

    def _commit_floors(self, db, plan: Plan, cut: Cut, floors: Mapping[str, int]) -> None:  # type: ignore[no-untyped-def]
        """From where each stream is complete, for queries to come."""
        for stream in self.streams:
            newest = [c for s, _, c in cut.newest if s == stream]
            # What nobody reads is not kept: a later query sees the stream from its next tuple on.
            complete = floors.get(stream, max(newest, default=BEGINNING) + 1)
            db.execute(
                "INSERT INTO floors VALUES (?, ?, ?) ON CONFLICT (stream) DO UPDATE SET "
                "complete_from = max(complete_from, excluded.complete_from)",
                (stream, min(complete, FOREVER), BEGINNING),
            )

    def _is_needed(self, segment: Segment, plan: Plan, cut: Cut, floors: Mapping[str, int]) -> bool:
        if segment.table.startswith("stem/"):
            stream = segment.table.split("/")[1]
            tables = {stem_table(stream, k) for k in plan.stems.get(stream, ())}
            return segment.table in tables and segment.high >= floors.get(stream, FOREVER)
        flow = segment.table.split("/")[0]
        return flow in cut.ranges and segment.high >= cut.ranges[flow][1]

    def _learn(self, db, reports: list[TaskReport]) -> None:  # type: ignore[no-untyped-def]
        known = dict(self.store.all("SELECT probe, fanout FROM fanouts"))
        seen: dict[str, list[int]] = {}
        for report in reports:
            for probe, (before, after) in report.matches.items():
                counts = seen.setdefault(probe, [0, 0])
                counts[0] += before
                counts[1] += after
        for probe, (before, after) in seen.items():
            if before:
                now = after / before
                smoothed = known.get(probe, now) * (1 - SMOOTHING) + now * SMOOTHING
                db.execute("INSERT OR REPLACE INTO fanouts VALUES (?, ?)", (probe, smoothed))

    def _remove_files(self, landed: list[str], live: set[str], reports: list[TaskReport]) -> None:
        for file in landed:
            (self.folder / file).unlink(missing_ok=True)
        self._reader.keep_only(self.folder / "segments", live)
        for path in (self.folder / "segments").iterdir():
            if path.name not in live:
                path.unlink(missing_ok=True)


class Cut(msgspec.Struct, frozen=True):
    """A tick's record: what goes in and how far time moves. The same cut gives the same output."""

    number: int
    landed: list[int]
    newest: list[tuple[str, int, int]]  # stream, partition, newest timestamp
    ranges: dict[str, tuple[int, int]]
    tasks: int


def _watermark(stream: StreamDef, newest: list[int]) -> int:
    if not newest or min(newest) == BEGINNING:
        return BEGINNING
    lowest = min(newest)
    return FOREVER if lowest == FOREVER else lowest - stream.lateness


def _orders(op: ph.Join, name: str, fanouts: Mapping[str, float]) -> list[list[int]]:
    of = {}
    for probe, fanout in fanouts.items():
        owner, start, target = probe.split("/")
        if owner == name:
            of[int(start), int(target)] = fanout
    return [probing_order(op, i, of) for i in range(len(op.inputs))]


__all__ = ["Cut", "Emission", "SharedEngine", "Tick", "names"]
