"""The shared engine: definitions in, batches in, ticks, changelogs out.

    cut -> write down -> run -> deliver -> commit

A tick takes a consistent cut over what has landed, decides how far each flow may go, writes that
down, has its tasks run, delivers the results, and commits everything in one transaction.
"""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from thalweg.engine.shared.compile.planning import Run, make_plan
from thalweg.engine.shared.groups.cost_model import Observed, Sharing
from thalweg.engine.shared.groups.families import Lengths
from thalweg.engine.shared.groups.members import window_classes, windows_in
from thalweg.engine.shared.groups.regrouping import regroup
from thalweg.engine.shared.groups.roster import Homes
from thalweg.engine.shared.ingest.landing import Landing, Receipt
from thalweg.engine.shared.registering import Registering
from thalweg.engine.shared.results.archive import Archive
from thalweg.engine.shared.results.results import Emission, NoOutlet, Outlet, Results
from thalweg.engine.shared.state.segments import Segment
from thalweg.engine.shared.state.store import Store
from thalweg.engine.shared.tick import commit
from thalweg.engine.shared.tick.cut import Cut, make_cut, watermark
from thalweg.engine.shared.tick.delivery import Pushed, deliver, pushed_of
from thalweg.engine.shared.tick.executors import Executor, InProcess
from thalweg.engine.shared.tick.measures import Tick, added, phases_of, rows_by_run
from thalweg.engine.shared.tick.plan_files import PlanFiles
from thalweg.engine.shared.tick.runner import read_report
from thalweg.engine.shared.tick.spec import floors_of, stems_of, tick_spec
from thalweg.engine.shared.tick.task import Plan, TaskReport
from thalweg.engine.shared.tick.task_assignment import Share, shares
from thalweg.plan.catalog import QueryDef, StreamDef
from thalweg.sharing.interning import Pool

ROWS_FOR_MORE_TASKS = 50_000  # below this, one task is quicker than several and a shuffle
SECONDS_FOR_MORE_TASKS = 0.25  # of all runs in a tick; below this, a second task does not pay
RETAINED_TICKS = 1_000
_STATE = ("streams", "queries", "homes", "generations")


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
        seconds_for_more_tasks: float = SECONDS_FOR_MORE_TASKS,
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
        self.queries: dict[str, Run] = {}
        self.generations = {g.name: g for g in map(pickle.loads, self.store.generations())}
        self.homes = Homes()
        self.archive = Archive(self.store, self.folder, self.queries.get)
        self.sharing = sharing
        self.pool = Pool()  # of what many queries have in common
        self.retained_ticks = retained_ticks
        self.durable = durable
        self._rows_for_more_tasks = rows_for_more_tasks
        self._seconds_for_more_tasks = seconds_for_more_tasks
        self._lock = threading.RLock()
        self._segments = {s.key: s for s in self.store.segments("segments")}
        self._plan: Plan | None = None
        self.observed = Observed()
        self.tried: set[frozenset[str]] = set()  # merges begun since the queries last changed
        self.shrunk = set(self.generations)  # groups that may have lost members
        self._settled = False  # whether grouping has nothing left to do
        self._waits_after: int | None = None  # the tick after which it could do nothing
        self._pushed: dict[str, Pushed] | None = None
        self._runs: dict[str, Run] | None = None
        self._windows: dict[str, list[Lengths]] = {}
        self.plan_files = PlanFiles(self.folder / "plans")
        for part in ("segments", "pushed"):
            (self.folder / part).mkdir(exist_ok=True)

    def close(self) -> None:
        with self._lock:
            self.store.close()

    # --- definitions

    def add_stream(self, stream: StreamDef) -> None:
        with self._lock:
            self.streams[stream.name] = stream

    def add_queries(self, queries: Iterable[QueryDef]) -> list[Run]:
        """Register queries; they take part from the next tick on, and begin together.

        A query that the book knows (after a restart) goes on where it was.
        """
        with self._lock:
            wanted = list(queries)
            registering = Registering(self, wanted)
            made = [registering.registered(q) for q in wanted]
            self.store.write_queries(
                (q.name, q.epoch, q.started, dict(q.horizons)) for q in registering.fresh(made)
            )
            self.queries.update((q.name, q) for q in made)
            self.homes.update(registering.homes(made))
            self.forget_plan()
            self._settled = False
            self.tried.clear()
            return made

    def drop_query(self, name: str) -> None:
        with self._lock:
            self.store.delete_query(name)
            del self.queries[name]
            home = self.homes.pop(name, None)
            if home is not None and not self.homes.members_of(home):
                self.store.end_generation(home, self.store.tick()[0])
                del self.generations[home]
            elif home is not None:
                self.shrunk.add(home)
                self._settled = False
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

    def state(self) -> tuple[dict[str, Any], ...]:
        """What is registered, to be restored if a change has to be taken back."""
        return tuple(getattr(self, part).copy() for part in _STATE)

    def restore(self, state: tuple[dict[str, Any], ...]) -> None:
        for part, before in zip(_STATE, state, strict=True):
            current = getattr(self, part)
            current.clear()
            current.update(before)
        self.forget_plan()

    # --- who is answered by whom

    @property
    def runs(self) -> dict[str, Run]:
        """What a tick computes: queries that run alone, and groups."""
        if self._runs is None:
            alone = self.homes.homeless(self.queries)
            self._runs = alone | {name: g.run for name, g in self.generations.items()}
        return self._runs

    def run_of(self, query: str) -> Run | None:
        """The run that answers a query."""
        home = self.homes.get(query)
        return self.generations[home].run if home is not None else self.queries.get(query)

    @property
    def segments(self) -> Mapping[tuple[str, int], Segment]:
        """What is stored, as of the last tick."""
        return self._segments

    def adopt(self, segments: Iterable[Segment]) -> None:
        """State that no tick has written."""
        added = list(segments)
        self.store.change_segments("segments", added, [])
        self._segments |= {s.key: s for s in added}

    def members_of(self, generation: str) -> list[Run]:
        return [self.queries[q] for q in self.homes.members_of(generation)]

    def windows_of(self, generation: str) -> list[Lengths]:
        """The different windows of a group's members."""
        if generation not in self._windows:
            family = self.generations[generation].family
            members = self.members_of(generation)
            self._windows[generation] = windows_in(family) if family else window_classes(members)
        return self._windows[generation]

    def forget_plan(self) -> None:
        """What is computed has changed."""
        self._plan = self._pushed = self._runs = self._waits_after = None
        self._windows.clear()

    def resubscribe(self) -> None:
        """The outlet wants other queries' rows than before."""
        with self._lock:
            self._pushed = None

    @property
    def pushed(self) -> dict[str, Pushed]:
        """What the outlet wants of groups' members, by generation."""
        if self._pushed is None:
            found = {name: pushed_of(self, g) for name, g in self.generations.items()}
            self._pushed = {name: pushed for name, pushed in found.items() if pushed is not None}
        return self._pushed

    def _regroup(self, tick: int) -> None:
        """Before a tick; `tick` is the last one. If nothing could be done then, it can't be now."""
        if self.sharing is not Sharing.NEVER and not self._settled and self._waits_after != tick:
            done = regroup(self)
            self._settled = done.settled
            self._waits_after = None if done.changed else tick

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
                self._regroup(number)
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
            self._plan = make_plan(self.runs.values(), self.streams, stems_of(self.store))
        return self._plan

    def _plan_of(self, cut: Cut) -> Plan:
        """The plan that the cut was made for: after a crash, newer queries have to wait."""
        runs = self.runs
        if cut.queries == sorted(runs):
            return self.plan
        then = [runs[name] for name in cut.queries if name in runs]
        return make_plan(then, self.streams, stems_of(self.store))

    def _run(self, cut: Cut, began: float) -> Tick:
        plan = self._plan_of(cut)
        floors = floors_of(cut, plan)
        marks = [began, time.perf_counter()]
        reports = self._execute(cut, plan, floors)
        marks.append(time.perf_counter())
        rows_out = deliver(self, cut, reports)
        marks.append(time.perf_counter())
        self._segments = commit.commit(self, plan, cut, floors, reports)
        self.observed.saw(cut.rows, rows_by_run(reports), added([r.seconds for r in reports]))
        marks.append(time.perf_counter())
        tasks = len(reports) if cut.tasks == 1 else cut.tasks
        return Tick(
            cut.number,
            max((r.rows_in for r in reports), default=0),
            rows_out,
            marks[-1] - began,
            tasks,
            added([r.seconds for r in reports]),
            phases_of(marks, sum(r.busy_s for r in reports) / tasks),
        )

    def rehearse(self, cut: Cut, names: Collection[str]) -> None:
        """Run a tick for some of its queries only and forget what comes of it; raises as it would.

        What it writes is listed nowhere, and the tick itself writes over it.
        """
        with self._lock:
            runs = self.runs
            plan = make_plan([runs[n] for n in names], self.streams, stems_of(self.store))
            self._execute(cut, plan, floors_of(cut, plan))

    def _execute(self, cut: Cut, plan: Plan, floors: dict[str, int]) -> list[TaskReport]:
        divided: tuple[Share, ...] = ()
        if cut.tasks == 1:
            least_s = self._seconds_for_more_tasks
            divided = shares(plan, self.executor.tasks, self.observed.seconds, least_s)
        spec = tick_spec(self, cut, plan, floors, shares=divided, durable=self.durable)
        levels = 1 + max((plan.level_of(o) for f in plan.flows for _, o in f.outputs), default=0)
        encoded = msgspec.msgpack.encode(spec)
        packed = self.executor.run(encoded, cut.tasks, levels, len(divided) or 1)
        self.plan_files.keep_only(
            {spec.plan, *(g.families for g in spec.groups.values() if g.families)}
        )
        return [read_report(r) for r in packed]

    def emissions_after(self, query: str, tick: int = 0) -> list[Emission]:
        """What a query said in the retained ticks after this one."""
        columns = self.queries[query].columns
        pages = self.archive.pages(query, tick)
        return [Emission(query, number, columns, rows) for number, rows in pages]
