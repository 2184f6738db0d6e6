"""What a seed of `swap` plays with: a join, where it runs, and what the reference says of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from thalweg.adapt.swap.policies.back_pressure import BackPressure
from thalweg.adapt.swap.policies.both import LotteryAndBackPressure
from thalweg.adapt.swap.policies.lottery import Lottery
from thalweg.adapt.swap.query import NEVER, SwapQuery, Values
from thalweg.adapt.swap.settings import SwapSettings
from thalweg.engine.arrivals import Arrival
from thalweg.engine.changelog import Change
from thalweg.engine.reference import evaluate
from thalweg.overlay.generator import Generator
from thalweg.overlay.protocol import Address
from thalweg.placement.swap.join_graph import AnnotatedJoinGraph, Edge, JoinGraphError, join_graph
from thalweg.plan.catalog import Field, StreamDef
from thalweg.plan.expr import Col, conjunction
from thalweg.plan.functions import call
from thalweg.plan.nodes import Join, Node, Project, Scan, Window
from thalweg.plan.types import BIGINT
from thalweg.plan.windows import TimeWindow

INSTANT_US = 50_000
COLUMNS = ("a", "b")
MOST_TRIES = 50


@dataclass(frozen=True, slots=True)
class Draw:
    query: SwapQuery
    settings: SwapSettings
    domain: int  # of join values


def draw(generator: Generator, sites: Sequence[Address]) -> Draw:
    return Draw(
        query=_query(generator, sites),
        settings=SwapSettings(
            batch_rows=generator.choice((1, 2, 4, 8)),
            window_rows=generator.choice((2, 4, 16)),
            pending_rows=generator.choice((1, 2, 4, 16)),
            threshold_rows=generator.choice((1, 2, 5)),
            beat_us=generator.between(80_000, 250_000),
            managed=True,
            policy=generator.choice((Lottery, BackPressure, LotteryAndBackPressure)),
        ),
        domain=generator.between(2, 6),
    )


def _query(generator: Generator, sites: Sequence[Address]) -> SwapQuery:
    for _ in range(MOST_TRIES):  # some parallel nodes can't be divided, and are refused
        try:
            query = _drawn(generator, sites)
            _ = query.plan
        except JoinGraphError:
            continue
        return query
    raise AssertionError("no drawn join can be run")


def _drawn(generator: Generator, sites: Sequence[Address]) -> SwapQuery:
    count = generator.choice((2, 3, 3, 3, 4, 4))
    edges = [
        Edge(generator.below(i), generator.below(2), i, generator.below(2)) for i in range(1, count)
    ]
    if count > 2 and generator.chance(0.3):
        left, right = generator.sample(range(count), 2)
        edges.append(Edge(left, generator.below(2), right, generator.below(2)))
    graph = join_graph([f"S{i}" for i in range(count)], edges)
    delegated = [(generator.choice(sites),) for _ in graph.streams]
    processed = [(generator.choice(sites),) for _ in graph.edges]
    partitioned_by: list[int | None] = [None] * count
    if len(sites) > 1 and generator.chance(0.35):
        edge = generator.below(len(graph.edges))
        stream = generator.choice(graph.edges[edge].streams)
        parts = tuple(generator.sample(sites, 2))
        if generator.chance(0.7):
            processed[edge] = parts
        if generator.chance(0.7):
            delegated[stream] = parts
            if generator.chance(0.5):
                partitioned_by[stream] = graph.edges[edge].column(stream)
    windows = [None if generator.chance(0.2) else generator.between(5, 24) for _ in graph.streams]
    if generator.chance(0.5):
        windows = [w or 20 for w in windows]
    return SwapQuery(
        "q",
        AnnotatedJoinGraph(graph, tuple(delegated), tuple(processed), tuple(partitioned_by)),
        tuple(windows),
        tuple([(s, generator.below(2)) for s in range(count)]),
        generator.choice(sites),
        generator.between(20, 200) if generator.chance(0.4) else NEVER,
    )


def plan_of(query: SwapQuery) -> Node:
    """The same join in the algebra."""
    graph = query.annotated.graph
    leaves = [_leaf(name, w) for name, w in zip(graph.streams, query.windows, strict=True)]
    equalities = [
        call("=", _column(e.left, e.left_column), _column(e.right, e.right_column))
        for e in (*graph.edges, *graph.conditions)
    ]
    joined = Join(tuple(leaves), conjunction(tuple(equalities)))
    names = tuple([f"c{i}" for i in range(len(query.outputs))])
    return Project(joined, tuple([_column(*o) for o in query.outputs]), names)


def _leaf(name: str, window: int | None) -> Node:
    fields = tuple([Field(c, BIGINT) for c in COLUMNS])
    is_relation = window is None
    stream = StreamDef(name, fields, "ts", BIGINT, is_relation, resolution_us=INSTANT_US)
    return Scan(stream) if window is None else Window(Scan(stream), TimeWindow(window))


def _column(stream: int, column: int) -> Col:
    return Col(stream * len(COLUMNS) + column, BIGINT)


Fed = Mapping[int, list[tuple[int, str, Values]]]  # by stream: instant, op, values


def expected(query: SwapQuery, fed: Fed, upto: int) -> list[Change]:
    """The reference's changelog from the query's first instant on and below `upto`, on what was
    accepted; it begins with what holds then."""
    inputs = {}
    for stream, name in enumerate(query.annotated.graph.streams):
        ordered = sorted(fed.get(stream, []), key=lambda t: (t[0], t[1] == "-"))
        inputs[name] = [
            Arrival(0, instant, position, values, op)
            for position, (instant, op, values) in enumerate(ordered)
        ]
    return begun_at(query.first, [c for c in evaluate(plan_of(query), inputs) if c.ts < upto])


def begun_at(first: int, changes: Sequence[Change]) -> list[Change]:
    """As who begins at an instant sees it."""
    held: Counter[tuple[object, ...]] = Counter()
    for change in changes:
        if change.ts <= first:
            held[change.row] += 1 if change.op == "+" else -1
    begun = sorted(held.elements(), key=lambda row: [(v is not None, v or 0) for v in row])
    return [Change(first, "+", row) for row in begun] + [c for c in changes if c.ts > first]
