"""All registered queries as one plan: flows, shared operators, and the SteMs that they need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.compile.columns import kept_columns, needed_columns
from thalweg.engine.shared.compile.encoding import digest
from thalweg.engine.shared.compile.history import Gap
from thalweg.engine.shared.compile.query import compile_query
from thalweg.engine.shared.compile.semijoins import lasting_semi, semi
from thalweg.engine.shared.kernels.join.probing import indexes
from thalweg.engine.shared.state.inputs import Stems
from thalweg.engine.shared.state.versions import Ended
from thalweg.engine.shared.tick.plan import Flow, Plan
from thalweg.plan.catalog import StreamDef
from thalweg.plan.expr import Col, Expr
from thalweg.plan.nodes import Node
from thalweg.plan.windows import BEGINNING, FOREVER
from thalweg.sharing.core import NormalQuery


@dataclass(frozen=True)
class Run:
    """A query as the engine runs it.

    Queries of one epoch began at one tick and saw the same history, so they can share state;
    `started` is the instant from which the result counts, `horizons` where its inputs begin.
    """

    name: str
    columns: tuple[str, ...]
    streams: tuple[str, ...]  # in order of name
    epoch: int
    started: int | None
    horizons: tuple[tuple[str, int], ...]
    normal: NormalQuery | None = None  # where it can be a member of a group
    plan: Node | None = None  # None for members, which are not run by themselves
    made: ph.Ending | None = None  # for a group's own run
    number: int = 0  # a query's creation number, part of its rows' ids
    lasting_plan: bool = False  # whether it began when semi-joins were planned otherwise
    gaps: tuple[Gap, ...] = ()  # what its windows lacked when it began
    keeps_content: bool = False  # whether its content has to be kept when old results go
    replaces: Ended | None = None  # until it has spoken: the version before it

    @cached_property
    def output(self) -> ph.Ending:
        if self.made is not None:
            return self.made
        assert self.plan is not None, f"{self.name} lives in a group"
        return compile_query(self.plan, lasting_semi if self.lasting_plan else semi)

    @property
    def flow(self) -> str:
        return _flow(self.epoch, self.streams, self.started, self.horizons)


@lru_cache(maxsize=1024)  # there are few, each of very many queries
def _flow(
    epoch: int,
    streams: tuple[str, ...],
    started: int | None,
    horizons: tuple[tuple[str, int], ...],
) -> str:
    return f"{epoch}-{digest((streams, started, horizons), 6)}"


def make_plan(
    queries: Iterable[Run],
    streams: Mapping[str, StreamDef],
    present: Stems,
    held: Iterable[str] = (),
) -> Plan:
    """The plan of a tick; SteMs that exist already keep their place, new ones come behind. Streams
    that are `held` are kept, whether somebody reads them or not."""
    pool: dict[ph.AnyOp, ph.AnyOp] = {}
    flows: dict[str, list[tuple[Run, ph.AnyOp]]] = {}
    for query in queries:
        flows.setdefault(query.flow, []).append((query, _interned(query.output, pool)))
    made = tuple(
        Flow(
            name,
            members[0][0].streams,
            tuple((q.name, output) for q, output in members),  # type: ignore[misc]
            members[0][0].horizons,
        )
        for name, members in flows.items()
    )
    read = {s for f in made for s in f.streams}
    kept = {s.name for s in streams.values() if s.is_retained}.union(
        s for s in held if s in streams
    )
    used = sorted(read | kept)
    needed = needed_columns(o for f in made for _, o in f.outputs)
    return Plan(
        made,
        {s: _stems(streams[s], made, present.get(s, ())) for s in used},
        {s: tuple(f.type for f in streams[s].fields) for s in used},
        {s: kept_columns(streams[s], needed.get(s, frozenset())) for s in used},
        frozenset(s for s in used if streams[s].is_relation),
        frozenset(s for s in used if streams[s].is_table),
    )


def _interned(op: ph.AnyOp, pool: dict[ph.AnyOp, ph.AnyOp]) -> ph.AnyOp:
    """The same tree with equal operators being one object."""
    rebuilt = ph.with_inputs(op, tuple(_interned(i, pool) for i in ph.inputs_of(op)))
    return pool.setdefault(rebuilt, rebuilt)


def _stems(
    stream: StreamDef, flows: tuple[Flow, ...], present: tuple[tuple[Expr, ...], ...]
) -> tuple[tuple[Expr, ...], ...]:
    """The keys by which joins probe this stream; the plain log where none does. Changes of a
    relation lie by their whole row, so that those that take each other back meet."""
    if stream.is_relation:
        return (tuple(Col(i, f.type) for i, f in enumerate(stream.fields)),)
    wanted: dict[tuple[Expr, ...], None] = {}
    for op in (op for flow in flows for op in flow.operators):
        if isinstance(op, ph.Join):
            for position, source in enumerate(op.inputs):
                if isinstance(source, ph.Source) and source.stream == stream.name:
                    wanted.update(dict.fromkeys(k for k in indexes(op, position) if k))
    keys = tuple(wanted) or ((),)
    kept = tuple(k for k in present if k in keys)
    return kept + tuple(k for k in keys if k not in kept)


def floor_of(stream: str, flows: Iterable[Flow], reached: Mapping[str, int]) -> int:
    """The instant below which no flow looks at the stream's tuples again."""
    floors = [_needed(flow, stream, reached[flow.name]) for flow in flows if stream in flow.streams]
    return min(floors, default=FOREVER)


def _needed(flow: Flow, stream: str, frontier: int) -> int:
    """A flow's own answer: how far back its windows and unfinished instants reach."""
    joined: set[int] = set()
    for op in flow.operators:
        if isinstance(op, ph.Join):
            joined |= {id(i) for i in op.inputs}
    needed = frontier
    for op in flow.operators:
        if not isinstance(op, ph.Source) or op.stream != stream:
            continue
        window = op.window
        if window.length is None:
            # Without a join above, what an unbounded window let in once is never looked at again.
            reach = None if id(op) in joined else window.slide
        else:
            reach = window.length + window.slide
        needed = BEGINNING if reach is None else min(needed, frontier - reach)
        if needed == BEGINNING:
            break
    return max(needed, BEGINNING)
