"""Ticks: cut, write down, run, deliver, commit."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from thalweg.engine.shared.compile.planning import Run, make_plan
from thalweg.engine.shared.groups.cost_model import Observed
from thalweg.engine.shared.groups.roster import Roster
from thalweg.engine.shared.state.frozen import Frozen
from thalweg.engine.shared.state.holds import Holds
from thalweg.engine.shared.state.manifest import Manifest
from thalweg.engine.shared.state.names import stem_table
from thalweg.engine.shared.state.store import Store
from thalweg.engine.shared.tick.commit import Commit
from thalweg.engine.shared.tick.cut import Cut, IsIdle, Log, begins, write_cut
from thalweg.engine.shared.tick.delivery import Delivery
from thalweg.engine.shared.tick.division import Division
from thalweg.engine.shared.tick.executors import Executor
from thalweg.engine.shared.tick.measures import Tick, added, phases_of, rows_by_run, share_on_cpu
from thalweg.engine.shared.tick.messages import TaskReport
from thalweg.engine.shared.tick.plan import Flow, Plan
from thalweg.engine.shared.tick.plan_files import PlanFiles
from thalweg.engine.shared.tick.runner import read_report
from thalweg.engine.shared.tick.shaping.shaping import Shaping, TickShapes
from thalweg.engine.shared.tick.spec import tick_spec
from thalweg.engine.shared.tick.task_assignment import Share, shares
from thalweg.plan.catalog import StreamDef
from thalweg.plan.windows import BEGINNING

ROWS_FOR_MORE_TASKS = 50_000  # below this, one task is quicker than several and a shuffle
SECONDS_FOR_MORE_TASKS = 0.25  # of all runs in a tick; below this, a second task does not pay
# What is merged while state is copied to another node has to be copied again.
MERGED_WHILE_COPIED = 1 << 17  # bytes
CHANGES_BEFORE_REDUCING = 100_000  # of a relation, that are kept as they came; 0: none


@dataclass(frozen=True)
class TickSettings:
    """When a tick is divided among tasks."""

    rows_for_more_tasks: int = ROWS_FOR_MORE_TASKS
    seconds_for_more_tasks: float = SECONDS_FOR_MORE_TASKS
    changes_before_reducing: int = CHANGES_BEFORE_REDUCING


class Ticks:
    """Runs ticks over a roster; whoever calls sees to it that the roster does not change."""

    def __init__(
        self,
        store: Store,
        manifest: Manifest,
        roster: Roster,
        streams: Mapping[str, StreamDef],
        executor: Executor,
        delivery: Delivery,
        commit: Commit,
        plan_files: PlanFiles,
        observed: Observed,
        settings: TickSettings,
        holds: Holds,
        frozen: Frozen,
        shaping: Shaping,
    ) -> None:
        self._store, self._manifest, self._roster, self._streams = store, manifest, roster, streams
        self.executor = executor
        self._delivery, self._commit, self._plan_files = delivery, commit, plan_files
        self._observed, self._settings, self._holds = observed, settings, holds
        self._frozen, self.shaping = frozen, shaping
        self._plan: tuple[object, Plan] | None = None  # with what it was made for
        self.division = Division()

    @property
    def plan(self) -> Plan:
        """Of all that runs."""
        retained = [s for s in self._streams.values() if s.is_retained]
        wanted = self._roster.version, retained, sorted(self._holds.least())
        if self._plan is None or self._plan[0] != wanted:
            self._plan = wanted, self.plan_for(self._roster.runs)
        return self._plan[1]

    @property
    def last_flows(self) -> Sequence[Flow]:
        """Of the plan that was made last, for those who look at it while others tick."""
        return () if self._plan is None else self._plan[1].flows

    def plan_for(self, runs: Mapping[str, Run]) -> Plan:
        stems = self._store.inputs.stems()
        return make_plan(runs.values(), self._streams, stems, self._holds.least())

    def pending(self) -> Cut | None:
        """The tick that is written down and not committed."""
        _, record = self._store.tick()
        return None if record is None else msgspec.msgpack.decode(record, type=Cut)

    def write_down(
        self, limit: int | None, is_idle: IsIdle, *, patient: bool = False
    ) -> Cut | None:
        """The next tick; None if there is nothing to do."""
        return write_cut(
            self._store,
            self.plan,
            self._streams,
            {name: q.started for name, q in self._roster.runs.items()},
            limit=limit,
            is_idle=is_idle,
            patient=patient,
            tasks=self.executor.tasks,
            rows_for_more_tasks=self._settings.rows_for_more_tasks,
            logs=self._logs(),
            successors=[r.flow for r in self._roster.successors()],
            held=self._holds.least(),
            frozen={r.flow for n in self._frozen if (r := self._roster.run_of(n)) is not None},
        )

    def _logs(self) -> dict[str, Log]:
        """What is stored of relations; those that lie under another key yet can wait."""
        present, least = self._store.inputs.stems(), self._settings.changes_before_reducing
        found = {}
        for stream in self.plan.signed:
            keys = self.plan.stems[stream]
            if present.get(stream) != keys:
                continue
            segments = self._manifest.of(stem_table(stream, keys[0]))
            rows_left = self._store.inputs.relation(stream).rows_left
            found[stream] = Log(
                sum(s.rows for s in segments),
                max((s.high for s in segments), default=BEGINNING),
                max(least, 2 * rows_left) if least else 0,
            )
        return found

    def _begun(self, cut: Cut) -> list[Run]:
        """Queries that have replaced others and speak for the first time."""
        return [r for r in self._roster.successors() if begins(r.flow, cut.ranges)]

    def run(self, cut: Cut, began: float) -> Tick:
        """A tick as it was written down."""
        plan = self._plan_of(cut)
        marks = [began, time.perf_counter()]
        shapes = self.shaping.for_tick(cut, plan)
        reports = self._execute(cut, plan, shapes)
        marks.append(time.perf_counter())
        rows_out = self._delivery(cut, reports)
        marks.append(time.perf_counter())
        begun = [r.name for r in self._begun(cut)]
        self._commit(plan, cut, self._streams, reports, self._delivery.outlet, shapes, begun)
        self._roster.settle(begun)
        seconds = added([r.seconds for r in reports])
        self._observed.record(cut.rows, rows_by_run(reports), seconds)
        if cut.tasks > 1:
            self.division.learn(reports, cut.rows)
        marks.append(time.perf_counter())
        tasks = len(reports) if cut.tasks == 1 else cut.tasks
        return Tick(
            cut.number,
            sum(rows for stream, rows in cut.rows.items() if stream in plan.stems),
            rows_out,
            marks[-1] - began,
            tasks,
            seconds,
            phases_of(marks, sum(r.busy_s for r in reports) / tasks),
            share_on_cpu(reports),
        )

    def clear_away(self) -> None:
        """Remove the files that the last tick has made superfluous."""
        self._commit.clear_away()

    def _held(self, cut: Cut) -> dict[str, bytes]:
        """What the versions before those held."""
        found = ((r.name, r.replaces) for r in self._begun(cut))
        return {n: e.content for n, e in found if e and e.content is not None and not e.closes}

    def rehearse(self, cut: Cut, names: Collection[str]) -> None:
        """Run a tick for some of its queries only and forget what comes of it; raises as it would.

        What it writes is listed nowhere, and the tick itself writes over it.
        """
        runs = self._roster.runs
        plan = self.plan_for({n: runs[n] for n in names})
        self._execute(cut, plan, self.shaping.for_tick(cut, plan))

    def _plan_of(self, cut: Cut) -> Plan:
        """The plan that the cut was made for: after a crash, newer queries have to wait."""
        runs = self._roster.runs
        known = {
            name: runs[name]
            for name in cut.queries
            if name in runs and runs[name].flow in cut.ranges  # else it is another by that name
        }
        return self.plan if len(known) == len(runs) else self.plan_for(known)

    def _execute(self, cut: Cut, plan: Plan, shapes: TickShapes) -> list[TaskReport]:
        divided: tuple[Share, ...] = ()
        if cut.tasks == 1:
            least_s = self._settings.seconds_for_more_tasks
            divided = shares(plan, self.executor.tasks, self._observed.seconds, least_s)
        started = {n: q.started for n, q in self._roster.runs.items() if q.started is not None}
        spec = tick_spec(
            self._store,
            cut,
            plan,
            plan_file=self._plan_files.write("plan", plan),
            segments=self._manifest,
            started=started,
            groups=self._delivery.group_specs(),
            shares=divided,
            held=self._held(cut),
            starts=self.division.starts(cut.tasks) if cut.tasks > 1 else (),
            buckets=self.division.buckets if cut.tasks > 1 else (),
            most_merged=MERGED_WHILE_COPIED if self._frozen.are_copied else None,
            shapes=shapes,
        )
        encoded = msgspec.msgpack.encode(spec)
        packed = self.executor.run(encoded, cut.tasks, plan.depth, len(divided) or 1)
        families = (g.families for g in spec.groups.values() if g.families)
        self._plan_files.keep_only({spec.plan, *families})
        return [read_report(r) for r in packed]
