"""The end of a tick: one transaction, then what is no longer needed goes.

Removing files can take longer than the tick itself, and nobody who waits for its rows waits for
that: whoever ticks calls `clear_away` once the rows are told.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterable, Mapping, Sequence

from thalweg.engine.shared.frames import POS, TS, W
from thalweg.engine.shared.ingest.side_files import set_aside
from thalweg.engine.shared.results.contents import Contents
from thalweg.engine.shared.results.emission import Outlet
from thalweg.engine.shared.results.readers import Readers
from thalweg.engine.shared.results.results import PUSHED, Results
from thalweg.engine.shared.state.inputs import Relation, behind
from thalweg.engine.shared.state.manifest import Manifest, Segments
from thalweg.engine.shared.state.names import (
    REJECTED,
    rejecting_relation,
    state_owner,
    stem_stream,
    stem_table,
)
from thalweg.engine.shared.state.segments import Segment, file_of, is_beside
from thalweg.engine.shared.state.store import Store
from thalweg.engine.shared.tick.cut import Cut
from thalweg.engine.shared.tick.messages import LANDED, TaskReport
from thalweg.engine.shared.tick.plan import Plan
from thalweg.engine.shared.tick.shaping.shaping import Shaping, TickShapes
from thalweg.engine.shared.tick.spec import floors_of
from thalweg.plan.catalog import StreamDef
from thalweg.plan.windows import BEGINNING, FOREVER

STEPS = 10  # in so many of them, the retained ticks are replaced by others
SMOOTHING = 0.3  # weight of the newest observation of a fan-out


class Commit:
    """`retained_ticks`: for how many ticks results can be read back, or for longer, while `readers`
    need them. Those that are older go some at a time, when their changes have become content."""

    def __init__(
        self,
        store: Store,
        manifest: Manifest,
        results: Results,
        contents: Contents,
        readers: Readers,
        *,
        retained_ticks: int,
        shaping: Shaping,
    ) -> None:
        self._shaping = shaping
        self._store, self._manifest, self._results = store, manifest, results
        self._contents, self._readers = contents, readers
        self.retained_ticks = retained_ticks
        self._left: list[Callable[[], None]] = []  # what removes files of the last tick

    def __call__(
        self,
        plan: Plan,
        cut: Cut,
        streams: Mapping[str, StreamDef],
        reports: list[TaskReport],
        outlet: Outlet,
        shapes: TickShapes,
        begun: Sequence[str] = (),
    ) -> None:
        """Make the tick a fact; `begun` have replaced others, and spoken for the first time."""
        store, expired = self._store, self._expired(cut)
        folded, replaced = self._contents.fold(expired) if expired else ([], [])
        floors = floors_of(cut, plan)
        kept = _kept(self._manifest.segments, plan, cut, floors, reports)
        shaping, before = self._shaping, self._manifest.segments
        joins, kept = shaping.stay(shaping.after(cut, plan, shapes, reports), shapes, kept, before)
        said = [s for r in reports for s in r.results]
        landed = store.inputs.landed_files()
        with store.transaction():
            self._manifest.write(kept)
            shaping.write(joins)
            store.outputs.add(cut.number, cut.ranges, said)
            if expired:
                store.outputs.change_contents(folded, replaced)
                store.outputs.expire(expired)
                store.runs.forget_groups(expired)
                store.versions.expire(expired)
            if begun:
                store.versions.begun(begun)
            store.inputs.take(cut.landed)
            for stream, columns in plan.kept.items():
                store.inputs.keep_columns(stream, columns)  # before time itself is moved
            store.inputs.write_cuts(cut.newest)
            store.write_frontiers({flow: upto for flow, (_, upto) in cut.ranges.items()})
            lost = _losing(self._manifest.segments.values(), floors, reports)
            store.inputs.complete_only_from(_complete_from(streams, cut, floors, lost))
            store.inputs.write_stems(plan.stems)
            _write_relations(store, plan, cut, kept)
            _learn(store, reports)
            self._set_rejects_aside(streams, said)
            outlet.write_progress(store)
            store.write_tick(cut.number, None)
        self._manifest.replace(kept)
        shaping.settle(joins)
        taken = landed - store.inputs.landed_files()
        pushed = {s.bundle for r in reports for s in r.pushed}
        fresh = {s.bundle for s in said}
        self._manifest.hold(map(file_of, filter(is_beside, fresh)))
        self._manifest.let_go(map(file_of, filter(is_beside, pushed - fresh)), expired)
        self._left += [
            self._manifest.clear_away,
            lambda: (store.files / LANDED).remove(taken),
            lambda: (store.files / PUSHED).remove(b for b in pushed if not is_beside(b)),
            lambda: self._results.expire(expired, fresh),
        ]
        if expired:
            self._left.append(self._contents.sweep)

    def clear_away(self) -> None:
        """Remove the files that the last tick has made superfluous; after a crash the next tick or
        start does."""
        left, self._left = self._left, []
        for remove in left:
            remove()

    def _expired(self, cut: Cut) -> int:
        """The last tick whose results go now; 0 if none does."""
        expired, oldest = cut.number - self.retained_ticks, self._store.outputs.oldest_tick()
        at_once = max(1, self.retained_ticks // STEPS)
        if oldest is None or expired - oldest + 1 < at_once:
            return 0
        expired = self._readers.last_past(oldest, expired)
        return expired if expired - oldest + 1 >= at_once else 0

    def _set_rejects_aside(self, streams: Mapping[str, StreamDef], said: Iterable[Segment]) -> None:
        for segment in said:
            stream = rejecting_relation(segment.table)
            if stream is None:
                continue
            names = [f.name for f in streams[stream].fields]
            rows = self._results.rows([segment]).sort(TS, POS).drop(TS, POS, W)
            reason = "a minus that matches no row"
            lines = [
                json.dumps(
                    # The flow that judged them may be older than a column.
                    {"row": dict(zip(names, row[: len(names)], strict=False)), "reason": reason},
                    default=str,
                )
                for row in rows.iter_rows()
            ]
            set_aside(self._store, stream, REJECTED, lines)


def _kept(
    before: Segments,
    plan: Plan,
    cut: Cut,
    floors: Mapping[str, int],
    reports: Iterable[TaskReport],
) -> Segments:
    merged = {tuple(key) for r in reports for key in r.removed}
    all_ = {**before, **{s.key: s for r in reports for s in r.added}}
    stems = {stem_table(s, k): s for s, keys in plan.stems.items() for k in keys}
    # What only a dropped query looked at goes with it, though its flow goes on.
    owners = {(flow.name, plan.name_of(op)) for flow, op in plan.operators}

    def needed(segment: Segment) -> bool:
        owner = state_owner(segment.table)
        if owner is None:
            stream = stems.get(segment.table)
            return stream is not None and segment.high >= floors.get(stream, FOREVER)
        return owner in owners and segment.high >= cut.ranges[owner[0]][1]

    return {key: s for key, s in all_.items() if key not in merged and needed(s)}


def _write_relations(store: Store, plan: Plan, cut: Cut, kept: Segments) -> None:
    for stream in plan.signed:
        before = store.inputs.relation(stream)
        reduced = cut.reduced.get(stream, before.reduced)
        # Its oldest flow tells what it has rejected.
        told = next((cut.ranges[f.name][1] for f in plan.flows if stream in f.streams), BEGINNING)
        left = before.rows_left
        if stream in cut.reduced:
            (table,) = (stem_table(stream, keys) for keys in plan.stems[stream])
            left = sum(s.rows for s in kept.values() if s.table == table)
        after = Relation(reduced, max(before.reported, reduced, told), left)
        if after != before:
            store.inputs.write_relation(stream, after)


def _losing(
    before: Iterable[Segment], floors: Mapping[str, int], reports: Iterable[TaskReport]
) -> set[str]:
    """The streams that have tuples below what is kept."""
    oldest = [(stem_stream(s.table), s.low) for s in before]
    oldest += [(stream, low) for r in reports for stream, low in r.oldest.items()]
    return {s for s, low in oldest if s is not None and low < floors.get(s, BEGINNING)}


def _complete_from(
    streams: Iterable[str], cut: Cut, floors: Mapping[str, int], lost: Container[str]
) -> dict[str, int]:
    """From where streams of which something is lost are complete, for queries to come.

    What nobody reads is not kept: a later query sees the stream from its next tuple on.
    """
    newest: dict[str, int] = {}
    for stream, _, latest in cut.newest:
        newest[stream] = max(newest.get(stream, BEGINNING), latest)
    unread = {s: behind(newest.get(s)) for s in streams if s not in floors}
    return unread | {s: floor for s, floor in floors.items() if s in lost}


def _learn(store: Store, reports: Iterable[TaskReport]) -> None:
    """How many rows came out of each probe for each that went in, smoothed."""
    seen: dict[str, list[int]] = {}
    for report in reports:
        for probe, (before, after) in report.matches.items():
            counts = seen.setdefault(probe, [0, 0])
            counts[0] += before
            counts[1] += after
    known, found = store.fanouts(), {}
    for probe, (before, after) in seen.items():
        if before:
            now = after / before
            found[probe] = known.get(probe, now) * (1 - SMOOTHING) + now * SMOOTHING
    store.write_fanouts(found)
