"""The end of a tick: one transaction, then what is no longer needed goes."""

from __future__ import annotations

import json
import pickle
import sqlite3
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.frames import FOREVER, POS, TS, W
from thalweg.engine.shared.ingest.landing import append_lines, rejects_file
from thalweg.engine.shared.state.segments import Segment
from thalweg.engine.shared.state.store import Store
from thalweg.engine.shared.tick.cut import Cut
from thalweg.engine.shared.tick.runner import REJECTED
from thalweg.engine.shared.tick.task import BEGINNING, Plan, TaskReport, stem_table

if TYPE_CHECKING:
    from thalweg.engine.shared.engine import SharedEngine

SMOOTHING = 0.3  # weight of the newest observation of a fan-out

Segments = dict[tuple[str, int], Segment]


def commit(
    engine: SharedEngine,
    plan: Plan,
    cut: Cut,
    floors: Mapping[str, int],
    reports: list[TaskReport],
) -> Segments:
    """Make the tick a fact; gives the segments that there are now."""
    store, before = engine.store, engine._segments
    kept = _kept(before, plan, cut, floors, reports)
    files = landed_files(store, cut)
    with store.transaction() as db:
        store.change_segments(
            "segments",
            [s for key, s in kept.items() if key not in before],
            [key for key in before if key not in kept],
        )
        store.add_results(cut.number, [s for r in reports for s in r.results])
        store.drop_results(cut.number - engine.retained_ticks)
        store.forget_generations(cut.number - engine.retained_ticks)
        db.executemany("DELETE FROM landed WHERE id = ?", [(i,) for i in cut.landed])
        _move_columns(db, store, plan)
        _move_time(db, cut)
        _move_floors(db, engine, cut, floors)
        _write_stems(db, plan)
        _learn(db, store, reports)
        _set_rejects_aside(engine, reports)
        for name, value in engine.outlet.progress().items():
            store.write_progress(name, value)
        store.write_tick(cut.number, None)
    for file in (f for of in files.values() for f in of):
        (engine.folder / file).unlink(missing_ok=True)
    live = {bundle for bundle, _ in kept}
    for path in (engine.folder / "segments").iterdir():
        if path.name not in live:
            path.unlink(missing_ok=True)
    for path in (engine.folder / "pushed").iterdir():
        path.unlink(missing_ok=True)
    fresh = {s.bundle for r in reports for s in r.results}
    engine.results.expire(cut.number - engine.retained_ticks, fresh)
    return kept


def landed_files(store: Store, cut: Cut) -> dict[str, list[str]]:
    """The files of a cut, by stream, in order of arrival."""
    wanted = set(cut.landed)
    files: dict[str, list[str]] = {}
    for id_, stream, file in store.all("SELECT id, stream, file FROM landed ORDER BY id"):
        if id_ in wanted and file is not None:
            files.setdefault(stream, []).append(file)
    return files


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
    owners = {
        f"{f.name}/{plan.name_of(op)}"
        for f in plan.flows
        for _, output in f.outputs
        for op in ph.walk(output)
    }

    def needed(segment: Segment) -> bool:
        if segment.table.startswith("stem/"):
            stream = stems.get(segment.table)
            return stream is not None and segment.high >= floors.get(stream, FOREVER)
        owner = segment.table.rsplit("/", 1)[0]
        return owner in owners and segment.high >= cut.ranges[owner.split("/", 1)[0]][1]

    return {key: s for key, s in all_.items() if key not in merged and needed(s)}


def _move_columns(db: sqlite3.Connection, store: Store, plan: Plan) -> None:
    """Which columns SteMs have, and from which instant on; before time itself is moved."""
    for stream, columns in plan.kept.items():
        since = store.kept_columns(stream)
        if since.keys() == columns:
            continue
        before = _newest_cut(store, stream)
        db.execute("DELETE FROM kept_columns WHERE stream = ?", (stream,))
        db.executemany(
            "INSERT INTO kept_columns VALUES (?, ?, ?)",
            [(stream, c, since.get(c, before)) for c in sorted(columns)],
        )


def _newest_cut(store: Store, stream: str) -> int:
    """What was in earlier ticks is older than this."""
    ((newest,),) = store.all("SELECT max(cut) FROM partitions WHERE stream = ?", stream)
    if newest is None or newest <= BEGINNING:
        return BEGINNING
    return min(int(newest) + 1, FOREVER)


def _move_time(db: sqlite3.Connection, cut: Cut) -> None:
    db.executemany(
        "UPDATE partitions SET cut = ? WHERE stream = ? AND partition = ?",
        [(latest, s, p) for s, p, latest in cut.newest],
    )
    db.execute("DELETE FROM frontiers")
    db.executemany(
        "INSERT INTO frontiers VALUES (?, ?)",
        [(flow, upto) for flow, (_, upto) in cut.ranges.items()],
    )


def _move_floors(
    db: sqlite3.Connection, engine: SharedEngine, cut: Cut, floors: Mapping[str, int]
) -> None:
    """From where each stream is complete, for queries to come; and what is late by idleness."""
    for stream in engine.streams:
        newest = [latest for s, _, latest in cut.newest if s == stream]
        # What nobody reads is not kept: a later query sees the stream from its next tuple on.
        unread = min(max(newest, default=BEGINNING) + 1, FOREVER) if newest else BEGINNING
        db.execute(
            "INSERT INTO floors VALUES (?, ?, ?) ON CONFLICT (stream) DO UPDATE SET "
            "complete_from = max(complete_from, excluded.complete_from), "
            "late_below = max(late_below, excluded.late_below)",
            (stream, floors.get(stream, unread), cut.late_below.get(stream, BEGINNING)),
        )


def _write_stems(db: sqlite3.Connection, plan: Plan) -> None:
    db.execute("DELETE FROM stems")
    db.executemany(
        "INSERT INTO stems VALUES (?, ?, ?)",
        [(s, i, pickle.dumps(k)) for s, keys in plan.stems.items() for i, k in enumerate(keys)],
    )


def _learn(db: sqlite3.Connection, store: Store, reports: Iterable[TaskReport]) -> None:
    """How many rows came out of each probe for each that went in, smoothed."""
    known = dict(store.all("SELECT probe, fanout FROM fanouts"))
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


def _set_rejects_aside(engine: SharedEngine, reports: Iterable[TaskReport]) -> None:
    for report in reports:
        for segment in report.results:
            if not segment.table.startswith(REJECTED):
                continue
            stream = segment.table.removeprefix(REJECTED)
            names = [f.name for f in engine.streams[stream].fields]
            rows = engine.results.rows([segment]).sort(TS, POS)
            lines = [
                json.dumps(
                    {
                        "row": dict(zip(names, row[: len(names)], strict=True)),
                        "reason": "a minus that matches no row",
                    },
                    default=str,
                )
                for row in rows.drop(TS, POS, W).iter_rows()
            ]
            append_lines(engine.store, rejects_file(stream), lines)
            engine.store.count(f"rejected/{stream}", len(lines))
