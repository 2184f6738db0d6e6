"""Queries of one tolerance are one class: who comes later joins it, and begins with what it holds.

Which rows pass must not depend on who asks when. So a new query whose tolerance some running query
has takes over that class as it is, at the instant F up to which that query has come: it begins with
the rows that are held then, stamped as they passed, and goes on from F as the others do. F, and the
horizon from which the class has counted, are decided here once, and written down with the query.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import polars as pl

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.compile.encoding import operator_id
from thalweg.engine.shared.compile.planning import Run
from thalweg.engine.shared.compile.query import tolerant_op
from thalweg.engine.shared.frames import E, H, W
from thalweg.engine.shared.state.manifest import Manifest
from thalweg.engine.shared.state.names import HELD, SINCE, WAITING, state_table
from thalweg.engine.shared.state.runs import ClassStart
from thalweg.engine.shared.state.segments import BundleWriter, SegmentReader
from thalweg.engine.shared.state.store import Store
from thalweg.plan.nodes import Node, Tolerant, walk
from thalweg.plan.windows import BEGINNING, FOREVER

CLASS = "_class"


class _Class(NamedTuple):
    """A class as a flow has it: the operator below, which keeps its state, and its own."""

    owner: str
    name: str
    stream: str


def join_classes(
    store: Store, manifest: Manifest, fresh: Iterable[Run], running: Iterable[Run]
) -> None:
    """For new queries; inside the transaction in which they begin."""
    wanted: dict[str, tuple[Run, dict[_Class, None]]] = {}
    for run in fresh:
        for class_ in _classes(run):
            wanted.setdefault(run.flow, (run, {}))[1][class_] = None
    if not wanted:
        return
    frontiers = store.frontiers()
    known: dict[_Class, list[Run]] = {}
    for run in sorted(running, key=lambda r: r.epoch):
        if frontiers.get(run.flow, BEGINNING) > BEGINNING:
            for class_ in _classes(run):
                known.setdefault(class_, []).append(run)
    writer = BundleWriter(manifest.folder, f"classes-{uuid.uuid4().hex[:8]}.arrow")
    for flow, (run, classes) in wanted.items():
        by_origin: dict[tuple[str, str], list[_Class]] = {}
        there = store.runs.class_starts(flow)  # by queries that came since the last tick
        for class_ in (c for c in classes if c.name not in there):
            origin = _origin(run, class_, known.get(class_, ()), frontiers)
            if origin is not None:
                start = _start(store, origin, class_, frontiers[origin.flow])
                store.runs.join_class(flow, class_.name, start)
                by_origin.setdefault((origin.flow, class_.owner), []).append(class_)
        for (origin_flow, owner), joined in by_origin.items():
            _copy(manifest, writer, (origin_flow, flow), owner, joined, frontiers[origin_flow])
    manifest.adopt(writer.close())


def starts_of(store: Store, run: Run, plan: Node) -> dict[Tolerant, ClassStart]:
    """Of the classes that a query has joined, when they began."""
    known = store.runs.class_starts(run.flow)
    found = {n: operator_id(tolerant_op(n)) for n in walk(plan) if isinstance(n, Tolerant)}
    return {node: known[name] for node, name in found.items() if name in known}


def _classes(run: Run) -> tuple[_Class, ...]:
    """A query with a tolerance can't be a member of a group: others are not looked at."""
    if run.normal is not None or run.plan is None:
        return ()
    found = (tolerant_op(n) for n in walk(run.plan) if isinstance(n, Tolerant))
    return tuple(
        dict.fromkeys(_Class(operator_id(op.input), operator_id(op), _of(op)) for op in found)
    )


def _of(op: ph.TolerantOf) -> str:
    (stream,) = ph.base_names(op)
    return stream


def _origin(
    run: Run, class_: _Class, known: Iterable[Run], frontiers: Mapping[str, int]
) -> Run | None:
    """Who has the class, and has come so far that all tuples from there on are at hand."""
    horizon = dict(run.horizons).get(class_.stream, BEGINNING)
    return next((r for r in known if r.flow != run.flow and horizon <= frontiers[r.flow]), None)


def _start(store: Store, origin: Run, class_: _Class, since: int) -> ClassStart:
    before = store.runs.class_starts(origin.flow).get(class_.name)
    own = dict(origin.horizons).get(class_.stream, BEGINNING)
    return ClassStart(own if before is None else before.horizon, since)


def _copy(
    manifest: Manifest,
    writer: BundleWriter,
    flows: tuple[str, str],
    owner: str,
    classes: list[_Class],
    since: int,
) -> None:
    """State of some classes, from one flow to another."""
    origin, to = flows
    names = [c.name for c in classes]
    reader = SegmentReader()
    for part in (HELD, WAITING):
        table = state_table(origin, owner, part)
        frames = [reader.read(manifest.folder, s).frame for s in manifest.of(table)]
        rows = _content(frames, names)
        if part == WAITING and rows is not None:
            rows = rows.filter(pl.col(E) >= since)
        if rows is not None and rows.height:
            low, high = (_extremes(rows)) if part == WAITING else (BEGINNING, FOREVER)
            writer.add(state_table(to, owner, part), rows.sort(H), low, high)
    begin = pl.DataFrame(
        {CLASS: names, E: [since] * len(names), H: [0] * len(names)},
        schema={CLASS: pl.String, E: pl.Int64, H: pl.UInt64},
    )
    # Until the flow has come there, and no longer.
    writer.add(state_table(to, owner, SINCE), begin, BEGINNING, since)


def _content(frames: list[pl.DataFrame], classes: list[str]) -> pl.DataFrame | None:
    if not frames:
        return None
    rows = pl.concat(frames).filter(pl.col(CLASS).is_in(classes))
    added = rows.group_by([c for c in rows.columns if c != W]).agg(pl.col(W).sum())
    return added.filter(pl.col(W) > 0).select(rows.columns)


def _extremes(rows: pl.DataFrame) -> tuple[int, int]:
    return int(rows[E].min()), int(rows[E].max())  # type: ignore[arg-type]
