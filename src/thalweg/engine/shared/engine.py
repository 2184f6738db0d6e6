"""The shared engine: definitions in, batches in, ticks, changelogs out.

    cut -> write down -> run -> deliver -> commit

A tick takes a consistent cut over what has landed, decides how far each flow may go, writes that
down, has its tasks run, delivers the results, and commits everything in one transaction. Who is
answered by whom is in the roster, what is stored in the manifest, and how a tick runs in `tick`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from thalweg.engine.shared.compile.planning import Run
from thalweg.engine.shared.filling import lacking
from thalweg.engine.shared.groups.cost_model import Sharing
from thalweg.engine.shared.groups.records import group_from_bytes
from thalweg.engine.shared.groups.regroup_actions import Grouping, RegroupActions
from thalweg.engine.shared.groups.regrouping import regroup
from thalweg.engine.shared.groups.roster import Roster, Snapshot
from thalweg.engine.shared.ingest.arriving import Receipt
from thalweg.engine.shared.ingest.landing import Landing
from thalweg.engine.shared.moving.export import movable
from thalweg.engine.shared.moving.manifest import CannotMove
from thalweg.engine.shared.older_relations import adopt_relations
from thalweg.engine.shared.registering import Past, Registering
from thalweg.engine.shared.replacing import retire
from thalweg.engine.shared.results.archive import Archive
from thalweg.engine.shared.results.contents import Contents
from thalweg.engine.shared.results.emission import Emission, Outlet
from thalweg.engine.shared.results.large import encoded_in
from thalweg.engine.shared.results.present import content, frontier_of
from thalweg.engine.shared.results.readers import Readers
from thalweg.engine.shared.results.results import Results
from thalweg.engine.shared.state.frozen import Frozen
from thalweg.engine.shared.state.holds import Holds
from thalweg.engine.shared.state.manifest import Manifest
from thalweg.engine.shared.state.store import Store
from thalweg.engine.shared.tick.commit import Commit
from thalweg.engine.shared.tick.cut import Cut, IsIdle, never_idle, watermark
from thalweg.engine.shared.tick.delivery import Delivery
from thalweg.engine.shared.tick.executors import Executor, InProcess
from thalweg.engine.shared.tick.measures import Tick
from thalweg.engine.shared.tick.plan import Plan
from thalweg.engine.shared.tick.plan_files import PlanFiles
from thalweg.engine.shared.tick.shaping.policy import Adaptive, Policy
from thalweg.engine.shared.tick.shaping.shaping import Shaping
from thalweg.engine.shared.tick.task import READER
from thalweg.engine.shared.tick.ticks import (
    CHANGES_BEFORE_REDUCING,
    ROWS_FOR_MORE_TASKS,
    SECONDS_FOR_MORE_TASKS,
    Ticks,
    TickSettings,
)
from thalweg.engine.shared.tolerance_classes import join_classes
from thalweg.plan.catalog import QueryDef, StreamDef
from thalweg.plan.windows import BEGINNING, FOREVER
from thalweg.sharing.interning import Pool

RETAINED_TICKS = 1_000


@dataclass(frozen=True)
class Definitions:
    """What is registered, to be restored if a change has to be taken back."""

    streams: dict[str, StreamDef]
    roster: Snapshot


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
        objects: str = "",
        rows_for_more_tasks: int = ROWS_FOR_MORE_TASKS,
        seconds_for_more_tasks: float = SECONDS_FOR_MORE_TASKS,
        retained_ticks: int = RETAINED_TICKS,
        changes_before_reducing: int = CHANGES_BEFORE_REDUCING,
        sharing: Sharing = Sharing.WHERE_IT_PAYS,
        shapes: Policy | None = None,
    ) -> None:
        """`shapes`: who decides what joins keep beside windows."""
        self.store = Store(folder, durable=durable, objects=objects)
        self.folder = folder.resolve()
        self.landing = Landing(self.store, tasks=executor.tasks if executor else 1)
        self.manifest = Manifest(self.store)
        self.roster = Roster(map(group_from_bytes, self.store.runs.groups()))
        self.streams: dict[str, StreamDef] = {}
        self.results = Results(self.store.files)
        self._aside: dict[str, Run] = {}  # no longer computed; what they said can be read
        self.archive = Archive(self.store, self._readable_run)
        self.grouping = Grouping(sharing, shrunk=set(self.roster.groups))
        if self.store.note("contents") is None:  # ticks up to this one have gone without a trace
            oldest = self.store.outputs.oldest_tick() or self.store.tick()[0] + 1
            self.store.write_note("contents", str(oldest - 1).encode())
        self._has_adopted = self.store.tick()[0] == 0
        self._pool = Pool()
        self._lock = threading.RLock()
        plan_files = PlanFiles(self.store.files)
        encoded_in(self.store.files).sweep(())  # what a crash has left
        each = executor.each if executor is not None and executor.tasks > 1 else None
        self._delivery = Delivery(self.roster, self.results, plan_files, each)
        if outlet is not None:
            self.outlet = outlet
        self.contents = Contents(
            self.store, self.store.files, self.roster_entry, self.archive.group
        )
        self.readers = Readers(self.store.outputs, self.archive.flows)
        self.holds = Holds(self.store)
        self.frozen = Frozen(self.store)
        self.grouping.pinned.update(self.frozen)
        shaping = Shaping(self.store, shapes or Adaptive())
        commit = Commit(
            self.store,
            self.manifest,
            self.results,
            self.contents,
            self.readers,
            retained_ticks=retained_ticks,
            shaping=shaping,
        )
        self.ticks = Ticks(
            self.store,
            self.manifest,
            self.roster,
            self.streams,
            executor or InProcess(),
            self._delivery,
            commit,
            plan_files,
            self.grouping.observed,
            TickSettings(rows_for_more_tasks, seconds_for_more_tasks, changes_before_reducing),
            self.holds,
            self.frozen,
            shaping,
        )

    def close(self) -> None:
        with self._lock:
            try:
                self.clear_away()
            finally:
                self.store.close()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Inside, no tick runs and nothing is registered by others."""
        with self._lock:
            yield

    # --- definitions

    def add_stream(self, stream: StreamDef) -> None:
        with self._lock:
            self.streams[stream.name] = stream

    def alter_stream(self, stream: StreamDef) -> None:
        """A stream that stands has one more column: NULL in all tuples that have come."""
        with self._lock, self.store.transaction():
            before = self.streams[stream.name]
            for place in range(len(before.fields), len(stream.fields)):
                self.store.inputs.add_column(stream.name, place)
            self.streams[stream.name] = stream
            self.roster.touch()

    def add_queries(
        self,
        queries: Iterable[QueryDef],
        starts: Mapping[str, int] | None = None,
        pasts: Mapping[str, Past] | None = None,
    ) -> list[Run]:
        """Register queries; they take part from the next tick on, and begin together.

        A query that the book knows (after a restart) goes on where it was. `starts` are the
        instants of those that have replaced others, `pasts` how far streams have come that begin
        here in the middle.
        """
        with self._lock:
            wanted = list(queries)
            if not wanted:
                return []
            registering = Registering(
                self.store,
                self.streams,
                self.grouping.sharing,
                self._pool,
                wanted,
                starts or {},
                pasts or {},
            )
            made, running = registering.runs(), self.roster.ungrouped().values()
            new = {name for name, _ in registering.fresh()}
            with self.store.transaction():
                self.store.runs.begin(registering.fresh())
                fresh = [run for run in made if run.name in new]
                join_classes(self.store, self.manifest, fresh, running)
            self.roster.add(made, registering.groups())
            self.grouping.queries_came()
            return made

    def drop_query(self, name: str) -> None:
        """With its results and its state; it need not run."""
        with self._lock:
            self.store.outputs.delete(name)
            self.store.versions.delete(name)
            self.leave(name)

    def leave(self, name: str) -> None:
        """Stop computing a query, for good; what it has said stays."""
        self.store.runs.delete(name)
        self._aside.pop(name, None)
        self.thaw(name)
        if name not in self.roster.queries:
            return
        group = self.roster.remove(name)
        if group is not None and not self.roster.members_of(group):
            self.store.runs.end_group(group, self.store.tick()[0])
            self.roster.end(group)
        elif group is not None:
            self.grouping.member_left(group)

    # --- state that goes elsewhere

    def pin(self, query: str) -> None:
        """From now on a query is not answered together with others: its state is its own. Raises
        CannotMove. It lasts until `thaw`, or a restart."""
        with self._lock:
            movable(self, query)
            self.grouping.pinned.add(query)
            self.frozen.copied.add(query)

    def freeze(self, query: str) -> int:
        """From now on a query says nothing: the first instant of which it has not said all. Raises
        CannotMove."""
        with self._lock:
            run = movable(self, query)
            if self.ticks.pending() is not None:
                raise CannotMove(f"{query}: a tick was interrupted, and has to run first")
            frontier = self.store.frontier(run.flow)
            if frontier == FOREVER:
                raise CannotMove(f"{query} has finished: there is nothing left to be said")
            self.grouping.pinned.add(query)
            self.frozen.add(query)
            return BEGINNING if frontier is None else frontier

    def retire(self, query: str) -> None:
        """A query that stands still goes on elsewhere: its state here is of no use any more. What
        it has said can be read until it is dropped."""
        with self._lock, self.store.transaction():
            run = self.roster.queries.get(query)
            if run is not None and query in self.frozen:
                reached = self.store.frontier(run.flow)
                self.frozen.retire(query, BEGINNING if reached is None else reached)
                self.set_aside([query], ())

    def tidy(self) -> None:
        """What was given away leaves the disk, also if no tick follows; not in a transaction. A
        file that is gone takes its room for as long as it is mapped."""
        with self._lock:
            if self.ticks.pending() is None:
                self.manifest.sweep({run.flow for run in self.roster.runs.values()})
                READER.keep_only(self.manifest.folder, {s.bundle for s in self.manifest})

    def thaw(self, query: str) -> None:
        """It goes on here, and may be answered together with others again."""
        with self._lock:
            if query in self.grouping.pinned:
                self.grouping.pinned.discard(query)
                self.grouping.queries_came()
            self.frozen.remove(query)

    def replace_queries(self, replaced: Iterable[tuple[QueryDef, QueryDef]]) -> list[Run]:
        """Old ones end and new ones of the same names begin, at instants of their own."""
        with self._lock, self.store.transaction():
            pairs = list(replaced)
            found = {new.name: retire(self, old, new) for old, new in pairs}
            starts = {name: at for name, at in found.items() if at is not None}
            return self.add_queries([new for _, new in pairs], starts)

    def drop_stream(self, name: str) -> None:
        """With its tuples, progress and counts. No query reads it any more."""
        with self._lock, self.store.transaction():
            self.store.inputs.delete(name)
            self.manifest.purge_stream(name)
            self.streams.pop(name, None)

    def set_aside(self, queries: Iterable[str], groups: Iterable[str]) -> None:
        """Stop computing queries, and groups with all their members; nothing is deleted."""
        for name in groups:
            self.store.runs.end_group(name, self.store.tick()[0])
            self.roster.end(name)
        for name in queries:
            self._aside[name] = self.roster.queries[name]
            self.roster.remove(name)

    def keep_aside(self, queries: Iterable[QueryDef]) -> None:
        """After a restart: queries that were set aside before."""
        with self._lock:
            wanted = list(queries)
            if wanted:
                sharing = self.grouping.sharing
                made = Registering(self.store, self.streams, sharing, self._pool, wanted, {}, {})
                self._aside.update((run.name, run) for run in made.runs())

    def definitions(self) -> Definitions:
        return Definitions(self.streams.copy(), self.roster.snapshot())

    def restore(self, before: Definitions) -> None:
        """After a change that was taken back in the book."""
        self.streams.clear()
        self.streams.update(before.streams)
        self.roster.restore(before.roster)
        self.manifest.reread()

    def roster_entry(self, query: str) -> Run | None:
        return self.roster.queries.get(query)

    def can_read(self, query: str) -> bool:
        """Whether what it said can be told: of a member, only with its plan."""
        return self._readable_run(query) is not None or not self.store.runs.memberships(query)

    def _readable_run(self, query: str) -> Run | None:
        return self.roster.queries.get(query) or self._aside.get(query)

    # --- output

    @property
    def outlet(self) -> Outlet:
        """Who gets what ticks say."""
        return self._delivery.outlet

    @outlet.setter
    def outlet(self, outlet: Outlet) -> None:
        self._delivery.outlet = outlet
        self._delivery.resubscribe()

    def resubscribe(self) -> None:
        """The outlet wants other queries' rows than before."""
        with self._lock:
            self._delivery.resubscribe()

    def emissions(self, query: str) -> list[Emission]:
        """What a query has said in the retained ticks."""
        run = self.roster.queries[query]
        return [
            Emission(query, run.number, run.columns, page.low, page.upto, page.rows)
            for page in self.archive.pages(query)
        ]

    def forget_unfinished(self) -> None:
        """Results of a tick that failed must not be mistaken for those of its next attempt."""
        self.results.keep_only(self.store.outputs.bundles())

    # --- what is now

    def content(self, query: QueryDef) -> tuple[int, pl.DataFrame]:
        """The last final instant of a relation, and its rows then (`c…`)."""
        with self._lock:
            final = frontier_of(self, query.name)
            return final - 1, content(self, query)

    # --- time

    def watermark(self, stream: str) -> int:
        """As of the last tick: no tuple below it will be accepted any more."""
        cuts = [cut for (s, _), cut in self.store.inputs.cuts().items() if s == stream]
        return watermark(self.streams[stream], cuts)

    def watermarks(self, streams: Iterable[str]) -> dict[str, int]:
        """Of several at once; those that are gone are left out."""
        cuts: dict[str, list[int]] = {}
        for (stream, _), cut in self.store.inputs.cuts().items():
            cuts.setdefault(stream, []).append(cut)
        known = self.streams
        return {s: watermark(known[s], cuts.get(s, [])) for s in streams if s in known}

    # --- input

    def push(self, stream: str, batch: pl.DataFrame, **options: object) -> Receipt:
        return self.landing.push(self.streams[stream], batch, **options)  # type: ignore[arg-type]

    def adopt(
        self,
        stream: StreamDef,
        columns: Collection[str],
        batch: pl.DataFrame,
        at: pl.Series,
        complete_from: int,
        resume: bytes,
    ) -> bool:
        """Take the past of a stream that is fed elsewhere, as far as it is not here: tuples, by
        their positions `at`, and of those that are here columns. From `complete_from` on, all of it
        is here then. Not now (False), while a tick has to be repeated as it was."""
        with self._lock:
            if self.ticks.pending() is not None:
                return False
            lacks = lacking(self.store, self.manifest, stream, columns, batch, at)
            self.store.inputs.complete_again_from({stream.name: complete_from})
            self.landing.adopt(stream, batch.filter(lacks), at.filter(lacks), resume)
            return True

    def finish(self, stream: str) -> None:
        self.landing.finish(self.streams[stream])

    # --- ticks

    @property
    def executor(self) -> Executor:
        return self.ticks.executor

    @property
    def plan(self) -> Plan:
        with self._lock:  # it is made of what others change
            return self.ticks.plan

    def tick(
        self, *, limit: int | None = None, is_idle: IsIdle = never_idle, patient: bool = False
    ) -> Tick | None:
        """One round over all new data, at most `limit` tuples; None if there is nothing to do, or,
        where that is `patient`, if few tuples have come and none of them moves any query's time.

        `is_idle` tells partitions that have been silent for too long to be waited for. A tick that
        a crash interrupted is run again as it was written down.
        """
        with self._lock:
            done = self.tick_only(limit=limit, is_idle=is_idle, patient=patient)
            self.clear_away()
            return done

    def tick_only(
        self, *, limit: int | None = None, is_idle: IsIdle = never_idle, patient: bool = False
    ) -> Tick | None:
        """The same for those who call `clear_away` when they have told of it."""
        with self._lock:
            self.clear_away()
            began = time.perf_counter()
            cut = self.ticks.pending()
            begun = bool(self.roster.successors())
            if cut is None:
                self.adopt_relations()
                self._regroup()
                cut = self.ticks.write_down(limit, is_idle, patient=patient)
            if cut is None:
                return None
            done = self.ticks.run(cut, began)
            if begun:
                self.grouping.queries_came()  # who has replaced another may be answered with others
            return done

    def clear_away(self) -> None:
        """Remove the files that the last tick has made superfluous."""
        with self._lock:
            self.ticks.clear_away()

    def run_to_end(self, *, limit: int | None = None) -> list[Tick]:
        """Ticks until nothing is left to do."""
        done = []
        while (tick := self.tick(limit=limit)) is not None:
            done.append(tick)
        return done

    def rehearse(self, cut: Cut, names: Collection[str]) -> None:
        """Run a tick for some of its queries only, and forget it; raises as it would."""
        with self._lock:
            self.ticks.rehearse(cut, names)

    def adopt_relations(self) -> None:
        """Once, in a data directory of a version that did not keep relations whole."""
        with self._lock:
            if self._has_adopted or self.ticks.pending() is not None:
                return
            self._has_adopted = True
            adopt_relations(self.store, self.manifest, self.plan, self.streams)

    def _regroup(self) -> None:
        """Before a tick. If nothing could be done after the last one, it can't be now."""
        grouping, now = self.grouping, (self.store.tick()[0], self.roster.version)
        if grouping.sharing is Sharing.NEVER or grouping.settled or grouping.waits_after == now:
            return
        actions = RegroupActions(self.store, self.manifest, self.roster, grouping)
        regroup(actions)
        grouping.settled = actions.settled
        grouping.waits_after = None if actions.changed else now
