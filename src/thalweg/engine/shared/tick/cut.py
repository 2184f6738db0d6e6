"""A tick's record: what goes in, and how far time moves.

The record is durable before the tick runs, and the tick's output is a function of it. So a tick
that a crash interrupted is run again as it was written down, whatever has arrived since.

With the record, in one transaction, floors are raised: what is below the instants that become final
is late from now on, whichever partition it comes from. Whatever has landed before that transaction
and is in no tick yet lies above the floor: a partition with such tuples is never taken for idle.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

import msgspec

from thalweg.engine.shared.kernels.streams import slides_below
from thalweg.engine.shared.state.inputs import Landed
from thalweg.engine.shared.state.store import Store
from thalweg.engine.shared.tick.plan import Flow, Plan
from thalweg.plan.catalog import StreamDef
from thalweg.plan.windows import BEGINNING, FOREVER

Newest = dict[tuple[str, int], int]  # (stream, partition) -> its newest timestamp

# Whether a partition has been silent for IDLE; without a partition, a stream that has none yet.
IsIdle = Callable[[str, int | None], bool]


class Cut(msgspec.Struct, frozen=True):
    number: int
    landed: list[int]
    newest: list[tuple[str, int, int]]  # stream, partition, newest timestamp
    ranges: dict[str, tuple[int, int]]  # flow -> the instants [from, upto) that become final
    queries: list[str]
    rows: dict[str, int]  # stream -> how many tuples go in
    tasks: int
    retained: dict[str, int] = {}  # stream -> what RETAIN keeps begins here
    reduced: dict[str, int] = {}  # relation -> its changes below become what is left of them

    def ended(self) -> list[str]:
        """Streams of which no tuple will come any more."""
        return _ended((stream, latest) for stream, _, latest in self.newest)


def _ended(newest: Iterable[tuple[str, int]]) -> list[str]:
    least: dict[str, int] = {}
    for stream, latest in newest:
        least[stream] = min(least.get(stream, FOREVER), latest)
    return sorted(stream for stream, latest in least.items() if latest == FOREVER)


def never_idle(stream: str, partition: int | None) -> bool:
    return False


def watermark(stream: StreamDef, newest: Iterable[int]) -> int:
    """The minimum over partitions of the newest timestamp less LATENESS; infinite at the end."""
    lowest = min(newest, default=BEGINNING)
    return lowest if lowest in (BEGINNING, FOREVER) else lowest - stream.lateness


def write_cut(
    store: Store,
    plan: Plan,
    streams: Mapping[str, StreamDef],
    starts: Mapping[str, int | None],
    *,
    limit: int | None,
    is_idle: IsIdle,
    tasks: int,
    rows_for_more_tasks: int,
    patient: bool = False,
    logs: Mapping[str, Log] | None = None,
    successors: Collection[str] = (),
    held: Mapping[str, int] | None = None,
    frozen: Collection[str] = (),
) -> Cut | None:
    """Everything that has landed, up to `limit` tuples, written down; None if there is nothing to
    do with it, or, where that is `patient`, nothing to say about it yet.

    `successors` are flows of queries that start with what another version held: all their rows are
    in one task, so that what is in both can be told. What is `held`, from an instant on, stays.
    Flows that are `frozen` say nothing.
    """
    with store.transaction():
        taken, left = _taken(store, limit)
        newest = dict(store.inputs.cuts())
        for _, landed in taken:
            place = landed.stream, landed.partition
            newest[place] = max(newest.get(place, BEGINNING), landed.newest)
        clock = _Clock(streams, newest, is_idle, left)
        ranges = _ranges(plan, starts, store.frontiers(), clock, frozen)
        rows = sum(landed.rows for _, landed in taken)
        may_wait = not taken or (patient and rows < rows_for_more_tasks)
        if may_wait and all(low == high for low, high in ranges.values()):
            return None
        reduced = _reduced(store, plan, streams, ranges, logs or {}, held or {})
        ended = _ended((stream, latest) for (stream, _), latest in newest.items())
        cut = Cut(
            store.tick()[0] + 1,
            [id_ for id_, _ in taken],
            [(s, p, latest) for (s, p), latest in newest.items()],
            ranges,
            sorted(starts),
            _rows_by_stream(landed for _, landed in taken),
            1
            if rows < rows_for_more_tasks or any(begins(f, ranges) for f in successors)
            else _tasks(plan, ended, tasks),
            _retained(store, plan, streams, newest, held or {}),
            reduced,
        )
        store.inputs.raise_floors(_floors(plan, ranges))
        store.inputs.raise_floors(reduced)
        store.write_tick(cut.number, msgspec.msgpack.encode(cut))
        return cut


def _ranges(
    plan: Plan,
    starts: Mapping[str, int | None],
    frontiers: Mapping[str, int],
    clock: _Clock,
    frozen: Collection[str],
) -> dict[str, tuple[int, int]]:
    ranges = {}
    for flow in plan.flows:
        reached = frontiers.get(flow.name, BEGINNING)
        upto = max(reached, clock.frontier(flow))
        # A query's first instant is the one at which it was submitted: not before it is final.
        started = max((s for q, _ in flow.outputs if (s := starts[q]) is not None), default=None)
        waits = reached == BEGINNING and started is not None and upto <= started
        waits = waits or flow.name in frozen
        ranges[flow.name] = (reached, reached if waits else upto)
    return ranges


def _retained(
    store: Store,
    plan: Plan,
    streams: Mapping[str, StreamDef],
    newest: Newest,
    held: Mapping[str, int],
) -> dict[str, int]:
    """Of each stream with RETAIN, or that others hold, the instant from which its tuples are kept.
    What a stream with RETAIN has when it ends stays."""
    found = {}
    for name in plan.stems:
        stream = streams[name]
        if name in held:
            found[name] = held[name]
        if stream.retain is None:
            continue
        now = watermark(stream, (t for (s, _), t in newest.items() if s == name and t < FOREVER))
        before = store.inputs.complete_from(name, ())
        since = before if now == BEGINNING else max(before, now - stream.retain)
        found[name] = min(since, held.get(name, since))
    return found


class Log(NamedTuple):
    """How many changes of a relation are stored, the newest one's instant, and when they are to be
    reduced."""

    rows: int
    newest: int
    limit: int


def _reduced(
    store: Store,
    plan: Plan,
    streams: Mapping[str, StreamDef],
    ranges: Mapping[str, tuple[int, int]],
    logs: Mapping[str, Log],
    held: Mapping[str, int],
) -> dict[str, int]:
    """The relations whose changes are to be reduced, and up to where: nobody looks at them one by
    one again, what comes from now on lies behind, and so does the start of every query to come
    (but for one over a stream that has not said anything yet)."""
    due = [name for name, log in logs.items() if log.rows >= log.limit]
    if not due:
        return {}
    newest: dict[str, list[int]] = {}
    for (stream, _), cut in store.inputs.cuts().items():
        newest.setdefault(stream, []).append(cut)
    marks = {s: watermark(streams[s], of) for s, of in newest.items() if s in streams}
    found = {}
    for name in due:
        lows = [ranges[f.name][0] for f in plan.flows if name in f.streams]
        unit = streams[name].resolution_us
        others = (t for s, t in marks.items() if streams[s].resolution_us == unit and t > BEGINNING)
        own = marks.get(name, BEGINNING)
        upto = min(own if not lows else min(lows), *others, logs[name].newest + 1)
        upto = min(upto, held.get(name, upto))
        if upto > store.inputs.relation(name).reduced:
            found[name] = upto
    return found


def begins(flow: str, ranges: Mapping[str, tuple[int, int]]) -> bool:
    """Whether a flow speaks for the first time."""
    low, upto = ranges.get(flow, (BEGINNING, BEGINNING))
    return low == BEGINNING < upto


def _taken(
    store: Store, limit: int | None
) -> tuple[list[tuple[int, Landed]], set[tuple[str, int]]]:
    """What goes in, and the partitions of which something has to wait for the next tick."""
    landed = store.inputs.landed()
    count, rows = 0, 0
    for _, entry in landed:
        if limit is not None and count and rows + entry.rows > limit:
            break
        count += 1
        rows += entry.rows
    return landed[:count], {(entry.stream, entry.partition) for _, entry in landed[count:]}


def _rows_by_stream(taken: Iterable[Landed]) -> dict[str, int]:
    found: dict[str, int] = {}
    for landed in taken:
        found[landed.stream] = found.get(landed.stream, 0) + landed.rows
    return found


class _Clock:
    """How far time has come, by what partitions have said and by who is silent."""

    def __init__(
        self,
        streams: Mapping[str, StreamDef],
        newest: Newest,
        is_idle: IsIdle,
        waiting: set[tuple[str, int]],
    ) -> None:
        self._streams = streams
        self._newest: dict[str, list[int]] = {}
        self._awake: dict[str, list[int]] = {}
        for (stream, partition), latest in newest.items():
            self._newest.setdefault(stream, []).append(latest)
            if (stream, partition) in waiting or not self._is_silent(stream, partition, is_idle):
                self._awake.setdefault(stream, []).append(latest)
        for stream in streams:
            if stream not in self._newest and not self._is_silent(stream, None, is_idle):
                self._awake[stream] = [BEGINNING]

    def _is_silent(self, stream: str, partition: int | None, is_idle: IsIdle) -> bool:
        """A table is never waited for: its changes come behind what is final."""
        table = self._streams.get(stream)
        return (table is not None and table.is_table) or is_idle(stream, partition)

    def frontier(self, flow: Flow) -> int:
        """The minimum over the flow's own inputs; a stream all of whose partitions are idle leaves
        the minimum. Where all are idle, time stands just behind the newest tuple: what came is
        final, lateness or not."""
        awake = [s for s in flow.streams if s in self._awake]
        if awake:
            return min(watermark(self._streams[s], self._awake[s]) for s in awake)
        # A table's change does not move the time of streams that are silent.
        clocks = [s for s in flow.streams if not self._streams[s].is_table] or flow.streams
        latest = max((t for s in clocks for t in self._newest.get(s, ())), default=BEGINNING)
        return latest if latest in (BEGINNING, FOREVER) else latest + 1


def _floors(plan: Plan, ranges: Mapping[str, tuple[int, int]]) -> dict[str, int]:
    """Of each stream, up to where somebody's result becomes final."""
    found: dict[str, int] = {}
    for flow in plan.flows:
        low, upto = ranges[flow.name]
        for stream in flow.streams if low < upto else ():
            found[stream] = max(found.get(stream, BEGINNING), upto)
    return found


def _tasks(plan: Plan, ended: Iterable[str], tasks: int) -> int:
    """RSTREAM must know when its last interval closes: one task sees them all."""
    over = frozenset(ended)
    ending = (f for f in plan.flows if over.intersection(f.streams))
    slides = any(slides_below(o) for f in ending for _, o in f.outputs)
    return 1 if slides else tasks
