"""A tick's record: what goes in, and how far time moves.

The record is durable before the tick runs, and the tick's output is a function of it. So a tick
that a crash interrupted is run again as it was written down, whatever has arrived since.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from thalweg.engine.shared.frames import FOREVER
from thalweg.engine.shared.kernels.streams import slides_below
from thalweg.engine.shared.state.store import Store
from thalweg.engine.shared.tick.task import BEGINNING, Flow, Plan
from thalweg.plan.catalog import StreamDef

Newest = dict[tuple[str, int], int]  # (stream, partition) -> its newest timestamp


class Cut(msgspec.Struct, frozen=True):
    number: int
    landed: list[int]
    newest: list[tuple[str, int, int]]  # stream, partition, newest timestamp
    ranges: dict[str, tuple[int, int]]  # flow -> the instants [from, upto) that become final
    queries: list[str]
    rows: dict[str, int]  # stream -> how many tuples go in
    late_below: dict[str, int]  # idle streams: time went on without them up to here
    tasks: int


def watermark(stream: StreamDef, newest: Iterable[int]) -> int:
    """The minimum over partitions of the newest timestamp less LATENESS; infinite at the end."""
    lowest = min(newest, default=BEGINNING)
    return lowest if lowest in (BEGINNING, FOREVER) else lowest - stream.lateness


def newest_of(newest: Newest, stream: str) -> list[int]:
    return [latest for (of, _), latest in newest.items() if of == stream]


def make_cut(
    store: Store,
    plan: Plan,
    streams: Mapping[str, StreamDef],
    starts: Mapping[str, int | None],
    *,
    limit: int | None,
    idle: frozenset[str],
    tasks: int,
    rows_for_more_tasks: int,
) -> Cut | None:
    """Everything that has landed, up to `limit` tuples; None if nothing can be done with it."""
    number, _ = store.tick()
    taken, rows = _taken(store, limit)
    newest: Newest = {
        (s, p): c for s, p, c in store.all("SELECT stream, partition, cut FROM partitions")
    }
    for _, stream, partition, latest, _ in taken:
        newest[stream, partition] = max(newest.get((stream, partition), BEGINNING), latest)
    frontiers = dict(store.all("SELECT flow, frontier FROM frontiers"))
    ranges = {}
    for flow in plan.flows:
        reached = frontiers.get(flow.name, BEGINNING)
        upto = max(reached, _frontier(flow, streams, newest, idle))
        # A query's first instant is the one at which it was submitted: not before it is final.
        started = max((s for q, _ in flow.outputs if (s := starts[q]) is not None), default=None)
        waits = reached == BEGINNING and started is not None and upto <= started
        ranges[flow.name] = (reached, reached if waits else upto)
    if not taken and all(low == high for low, high in ranges.values()):
        return None
    return Cut(
        number + 1,
        [entry[0] for entry in taken],
        [(s, p, latest) for (s, p), latest in newest.items()],
        ranges,
        sorted(starts),
        _rows_by_stream(taken),
        _late_below(plan, ranges, idle),
        _tasks(plan, ranges, tasks) if rows >= rows_for_more_tasks else 1,
    )


def _taken(store: Store, limit: int | None) -> tuple[list[tuple], int]:
    taken: list[tuple] = []
    rows = 0
    sql = "SELECT id, stream, partition, newest, rows FROM landed ORDER BY id"
    for entry in store.all(sql):
        if limit is not None and taken and rows + entry[4] > limit:
            break
        taken.append(entry)
        rows += entry[4]
    return taken, rows


def _rows_by_stream(taken: list[tuple]) -> dict[str, int]:
    found: dict[str, int] = {}
    for _, stream, _, _, rows in taken:
        found[stream] = found.get(stream, 0) + rows
    return found


def _frontier(
    flow: Flow, streams: Mapping[str, StreamDef], newest: Newest, idle: frozenset[str]
) -> int:
    """The minimum over the flow's own inputs; a stream that is idle leaves the minimum.

    Where all are idle, time stands at the newest tuple: what came is final, lateness or not.
    """
    awake = [s for s in flow.streams if s not in idle]
    if awake:
        return min(watermark(streams[s], newest_of(newest, s)) for s in awake)
    seen = [t for s in flow.streams for t in newest_of(newest, s)]
    latest = max(seen, default=BEGINNING)
    return latest if latest in (BEGINNING, FOREVER) else latest + 1


def _late_below(
    plan: Plan, ranges: Mapping[str, tuple[int, int]], idle: frozenset[str]
) -> dict[str, int]:
    found: dict[str, int] = {}
    for flow in plan.flows:
        for stream in idle.intersection(flow.streams):
            found[stream] = max(found.get(stream, BEGINNING), ranges[flow.name][1])
    return found


def _tasks(plan: Plan, ranges: Mapping[str, tuple[int, int]], tasks: int) -> int:
    """RSTREAM must know when the last interval closes: one task sees them all."""
    ending = (f for f in plan.flows if ranges[f.name][1] == FOREVER)
    slides = any(slides_below(o) for f in ending for _, o in f.outputs)
    return 1 if slides else tasks
