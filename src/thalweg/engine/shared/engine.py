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
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from thalweg.engine.shared import commit
from thalweg.engine.shared import physical as ph
from thalweg.engine.shared.archive import Archive
from thalweg.engine.shared.columns import needed_columns
from thalweg.engine.shared.compile import compile_query
from thalweg.engine.shared.cut import Cut, make_cut, watermark
from thalweg.engine.shared.executors import Executor, InProcess
from thalweg.engine.shared.families import (
    MEMBER,
    Family,
    Lengths,
    by_member,
    changes,
    is_divided_well,
)
from thalweg.engine.shared.frames import FOREVER
from thalweg.engine.shared.groups import Generation
from thalweg.engine.shared.ingest import Landing, Receipt
from thalweg.engine.shared.kernels.join import probing_order
from thalweg.engine.shared.members import families_of, window_classes
from thalweg.engine.shared.planning import Registered, Stems, floor_of, make_plan
from thalweg.engine.shared.regrouping import Regrouping
from thalweg.engine.shared.results import Emission, FamilyEmission, NoOutlet, Outlet, Results
from thalweg.engine.shared.runner import ENDED, STARTED, read_report
from thalweg.engine.shared.segments import Segment
from thalweg.engine.shared.store import Store
from thalweg.engine.shared.task import (
    BEGINNING,
    GroupSpec,
    Plan,
    TaskReport,
    TickSpec,
    stem_table,
)
from thalweg.engine.shared.worth import Observed, Sharing
from thalweg.plan.catalog import QueryDef, StreamDef
from thalweg.plan.nodes import base_streams, check_output, resolution_us
from thalweg.sharing.core import NormalQuery
from thalweg.sharing.interning import Pool
from thalweg.sharing.normal import normalise

ROWS_FOR_MORE_TASKS = 50_000  # below this, one task is quicker than several and a shuffle
RETAINED_TICKS = 1_000
_STATE = ("streams", "queries", "homes", "generations")


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


@dataclass(frozen=True)
class Pushed:
    """Families of a group's members whose rows go out, and the file in which tasks find them."""

    families: list[Family]
    columns: list[tuple[tuple[str, ...], ...]]
    file: str


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
        sharing: Sharing = Sharing.WHERE_IT_PAYS,
    ) -> None:
        self.store = Store(folder, durable=durable)
        self.folder = folder.resolve()
        self.executor = executor or InProcess()
        self.landing = Landing(self.store, durable=durable)
        self.results = Results(self.folder)
        self.outlet = outlet or NoOutlet()
        self.streams: dict[str, StreamDef] = {}
        self.queries: dict[str, Registered] = {}
        self.generations = {g.name: g for g in map(pickle.loads, self.store.generations())}
        self.homes: dict[str, str] = {}  # of the queries that a group answers
        self.archive = Archive(self.store, self.folder, self.queries.get)
        self.sharing = sharing
        self._pool = Pool()
        self.retained_ticks = retained_ticks
        self._durable = durable
        self._rows_for_more_tasks = rows_for_more_tasks
        self._lock = threading.RLock()
        self._segments = {s.key: s for s in self.store.segments("segments")}
        self._plan: Plan | None = None
        self.observed = Observed()
        self.tried: set[frozenset[str]] = set()  # merges begun since the queries last changed
        self._settled = False  # whether grouping has nothing left to do
        self._pushed: dict[str, Pushed] | None = None
        self._runs: dict[str, Registered] | None = None
        self._windows: dict[str, list[Lengths]] = {}
        for part in ("segments", "plans", "pushed"):
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
            known = self.store.homes()
            made = [self._registered(q, known.get(q.name)) for q in queries]
            self.store.write_queries((q.name, q.epoch, q.started, dict(q.horizons)) for q in made)
            self.queries.update((q.name, q) for q in made)
            self.homes.update((q.name, known[q.name]) for q in made if q.name in known)
            self.forget_plan()
            self._settled = False
            self.tried.clear()
            return made

    def drop_query(self, name: str) -> None:
        with self._lock:
            self.store.delete_query(name)
            del self.queries[name]
            home = self.homes.pop(name, None)
            if home is not None and home not in self.homes.values():
                self.store.end_generation(home, self.store.tick()[0])
                del self.generations[home]
            self.forget_plan()

    def set_aside(self, queries: Iterable[str], generations: Iterable[str]) -> None:
        """Stop computing queries, and groups with all their members; nothing is deleted."""
        for name in generations:
            self.store.end_generation(name, self.store.tick()[0])
            del self.generations[name]
        for name in queries:
            del self.queries[name]
            self.homes.pop(name, None)
        self.forget_plan()

    def _registered(self, query: QueryDef, home: str | None) -> Registered:
        check_output(query.plan)
        resolution_us(query.plan)
        for stream in base_streams(query.plan):
            self.streams.setdefault(stream.name, stream)
        columns = self._pool.one(tuple(f.name for f in query.plan.schema))
        streams = self._pool.one(tuple(sorted(s.name for s in base_streams(query.plan))))
        found = None if self.sharing is Sharing.NEVER else normalise(query.plan)
        normal = self._pool.normal(found) if isinstance(found, NormalQuery) else None
        plan = query.plan if home is None else None
        known = self.store.query(query.name)
        if known is not None:
            epoch, started, horizons = known
            pairs = self._pool.one(_pairs(horizons))
            return Registered(query.name, columns, streams, epoch, started, pairs, normal, plan)
        now = min(self.watermark(s) for s in streams)
        started = now if BEGINNING < now < FOREVER else None
        if query.from_now and started is not None:
            horizons = dict.fromkeys(streams, started)
        else:
            horizons = self._complete_from(query)
        epoch = self.store.tick()[0] + 1
        pairs = self._pool.one(_pairs(horizons))
        return Registered(query.name, columns, streams, epoch, started, pairs, normal, plan)

    def _complete_from(self, query: QueryDef) -> dict[str, int]:
        """Where a new query's inputs begin: with what is stored in all columns that it needs."""
        streams = base_streams(query.plan)
        needed: Mapping[str, Iterable[int]] = {s.name: range(len(s.fields)) for s in streams}
        if not all(map(self.store.is_whole, streams)):
            needed = needed_columns([compile_query(query.plan)])
        return {s: self.store.complete_from(s, columns) for s, columns in needed.items()}

    def state(self) -> tuple[dict[str, Any], ...]:
        """What is registered, to be restored if a change has to be taken back."""
        return tuple(dict(getattr(self, part)) for part in _STATE)

    def restore(self, state: tuple[dict[str, Any], ...]) -> None:
        for part, before in zip(_STATE, state, strict=True):
            current = getattr(self, part)
            current.clear()
            current.update(before)
        self.forget_plan()

    # --- who is answered by whom

    @property
    def runs(self) -> dict[str, Registered]:
        """What a tick computes: queries that run alone, and groups."""
        if self._runs is None:
            alone = {name: q for name, q in self.queries.items() if name not in self.homes}
            self._runs = alone | {name: g.run for name, g in self.generations.items()}
        return self._runs

    def run_of(self, query: str) -> Registered | None:
        """The run that answers a query."""
        home = self.homes.get(query)
        return self.generations[home].run if home is not None else self.queries.get(query)

    @property
    def segments(self) -> Mapping[tuple[str, int], Segment]:
        """What is stored, as of the last tick."""
        return self._segments

    def members_of(self, generation: str) -> list[Registered]:
        return [self.queries[q] for q, home in self.homes.items() if home == generation]

    def forget_plan(self) -> None:
        """What is computed has changed."""
        self._plan = self._pushed = self._runs = None
        self._windows.clear()

    def resubscribe(self) -> None:
        """The outlet wants other queries' rows than before."""
        with self._lock:
            self._pushed = None

    @property
    def pushed(self) -> dict[str, Pushed]:
        """What the outlet wants of groups' members, by generation."""
        if self._pushed is None:
            self._pushed = {}
            for name, generation in self.generations.items():
                members = self.members_of(name)
                wanted = [m for m in members if self.outlet.wants(m.name)]
                if generation.family is not None:  # run whether anybody listens or not
                    families = [generation.family]
                    columns = {m.name: m.columns for m in members}
                    of = tuple(columns.get(m, ()) for m in generation.family.members)
                    file = self._written("families", pickle.dumps(families))
                    self._pushed[name] = Pushed(families, [of], file)
                elif wanted:
                    families = families_of(generation.representative, wanted)
                    columns = [tuple(self.queries[m].columns for m in f.members) for f in families]
                    file = self._written("families", pickle.dumps(families))
                    self._pushed[name] = Pushed(families, columns, file)
        return self._pushed

    def _regroup(self) -> None:
        if self.sharing is not Sharing.NEVER and not self._settled:
            regrouping = Regrouping(self)
            regrouping.run()
            self._settled = regrouping.settled

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
                self._regroup()
                cut = make_cut(
                    self.store,
                    self.plan,
                    self.streams,
                    {name: q.started for name, q in self.runs.items()},
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
            self._plan = make_plan(self.runs.values(), self.streams, self._stems())
        return self._plan

    def _stems(self) -> Stems:
        found: Stems = {}
        for stream, keys in self.store.all("SELECT stream, keys FROM stems ORDER BY stream, place"):
            found[stream] = (*found.get(stream, ()), pickle.loads(keys))
        return found

    def _plan_of(self, cut: Cut) -> Plan:
        """The plan that the cut was made for: after a crash, newer queries have to wait."""
        runs = self.runs
        if cut.queries == sorted(runs):
            return self.plan
        then = [runs[name] for name in cut.queries if name in runs]
        return make_plan(then, self.streams, self._stems())

    def _run(self, cut: Cut, began: float) -> Tick:
        plan = self._plan_of(cut)
        floors = self._floors(cut, plan)
        marks = [began, time.perf_counter()]
        reports = self._execute(cut, plan, floors)
        marks.append(time.perf_counter())
        rows_out = self._emit(cut, reports)
        marks.append(time.perf_counter())
        self._segments = commit.commit(self, plan, cut, floors, reports)
        self.observed.saw(cut.rows, _rows_by_run(reports), _added([r.seconds for r in reports]))
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
            runs = self.runs
            plan = make_plan([runs[n] for n in names], self.streams, self._stems())
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
            started={n: q.started for n, q in self.runs.items() if q.started is not None},
            backfill=self._backfill(plan),
            groups={name: self._group_spec(name) for name in self.generations},
            durable=self._durable,
        )
        levels = 1 + max((plan.level_of(o) for f in plan.flows for _, o in f.outputs), default=0)
        packed = self.executor.run(msgspec.msgpack.encode(spec), cut.tasks, levels)
        self._tidy_plans(spec)
        return [read_report(r) for r in packed]

    def _tidy_plans(self, spec: TickSpec) -> None:
        used = {spec.plan, *(g.families for g in spec.groups.values())}
        for path in (self.folder / "plans").iterdir():
            if str(path) not in used:
                path.unlink(missing_ok=True)

    def _group_spec(self, name: str) -> GroupSpec:
        if name not in self._windows:
            self._windows[name] = window_classes(self.members_of(name))
        pushed = self.pushed.get(name)
        return GroupSpec(self._windows[name], None if pushed is None else pushed.file)

    def _emit(self, cut: Cut, reports: list[TaskReport]) -> int:
        segments = [s for r in reports for s in r.results]
        columns = {name: q.columns for name, q in self.runs.items() if name in self.queries}
        emissions: list[Emission | FamilyEmission] = [
            *self.results.emissions(cut.number, segments, columns),
            *self._family_emissions(cut, segments, [s for r in reports for s in r.pushed]),
        ]
        self.outlet.deliver(emissions)
        return sum(e.rows.height for e in emissions)

    def _family_emissions(
        self, cut: Cut, results: list[Segment], pushed: list[Segment]
    ) -> Iterator[FamilyEmission]:
        for name, wanted in self.pushed.items():
            generation = self.generations[name]
            if generation.is_lifted:
                yield from self._lifted_emissions(cut, generation, wanted, results)
                continue
            group = generation.operator
            for place, family in enumerate(wanted.families):
                parts = [s for s in pushed if s.table == f"{name}/{place}"]
                if cut.tasks == 1 or is_divided_well(group, family):
                    rows = self.results.pushed_rows(parts)
                else:
                    rows = self._family_rows(family, name, results)
                if rows is not None and rows.height:
                    columns = wanted.columns[place]
                    yield FamilyEmission(cut.number, family.members, columns, rows)

    def _lifted_emissions(
        self, cut: Cut, generation: Generation, pushed: Pushed, results: list[Segment]
    ) -> Iterator[FamilyEmission]:
        said = [s for s in results if s.table == generation.name]
        if not said:
            return
        rows = by_member(self.results.rows(said))
        members = pushed.families[0].members
        gone = [i for i, m in enumerate(members) if self.homes.get(m) != generation.name]
        if gone:
            rows = rows.filter(~pl.col(MEMBER).is_in(pl.Series(gone, dtype=pl.UInt32).implode()))
        if rows.height:
            yield FamilyEmission(cut.number, members, pushed.columns[0], rows)

    def _family_rows(
        self, family: Family, name: str, results: list[Segment]
    ) -> pl.DataFrame | None:
        """For a family whose equal rows may be in different tasks."""
        op = self.generations[name].operator
        found = {part: [s for s in results if s.table == name + part] for part in (STARTED, ENDED)}
        said = [*found[STARTED], *found[ENDED]]
        if not said:
            return None
        started, ended = (self.results.group_rows(found[p], op) for p in (STARTED, ENDED))
        return changes(family, started, ended, said[0].low, said[0].high)

    def emissions_after(self, query: str, tick: int = 0) -> list[Emission]:
        """What a query said in the retained ticks after this one."""
        columns = self.queries[query].columns
        pages = self.archive.pages(query, tick)
        return [Emission(query, number, columns, rows) for number, rows in pages]

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
        return self._written("plan", pickle.dumps(plan))

    def _written(self, kind: str, packed: bytes) -> str:
        """A file with this content for the tasks to read: a change is a new file."""
        name = hashlib.blake2b(packed, digest_size=8).hexdigest()
        path = self.folder / "plans" / f"{name}.{kind}"
        if not path.exists():
            partial = path.with_suffix(".partial")
            partial.write_bytes(packed)
            partial.rename(path)
        return str(path)


def _pairs(horizons: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple((s, h) for s, h in sorted(horizons.items()) if h > BEGINNING)


def _rows_by_run(reports: Iterable[TaskReport]) -> dict[str, int]:
    """Rows that runs have computed; of a group those that started."""
    found: dict[str, int] = {}
    for segment in (s for r in reports for s in r.results):
        run = segment.table.removesuffix(STARTED)
        found[run] = found.get(run, 0) + segment.rows
    return found


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
