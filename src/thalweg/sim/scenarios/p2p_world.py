"""What a seed of `p2p-join` plays with: streams, queries, and what counts as true in the end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from thalweg.engine.arrivals import Arrival
from thalweg.engine.changelog import Change
from thalweg.engine.reference import evaluate
from thalweg.overlay.generator import Generator
from thalweg.overlay.p2p.index_messages import EventTime
from thalweg.overlay.p2p.query import JoinQuery
from thalweg.overlay.p2p.tuples import Tup
from thalweg.plan.catalog import Field, StreamDef
from thalweg.plan.expr import Col, Expr, Lit, conjunction
from thalweg.plan.functions import call
from thalweg.plan.nodes import Filter, Join, Node, Project, Scan, Window
from thalweg.plan.types import BIGINT
from thalweg.plan.windows import TimeWindow

INSTANT_US = 50_000
COLUMNS = ("a", "b")


@dataclass(frozen=True, slots=True)
class Draw:
    """What the seed has drawn beside faults."""

    copies: int
    room: int | None
    eager: bool
    domain: int
    hot: float  # the share of tuples that have one value
    alerts: bool
    capacity: int | None  # partners are looked for beyond half of it
    time: EventTime | None  # of sources; None: their nodes' clocks


def draw(generator: Generator) -> Draw:
    shed = generator.chance(0.3)
    skewed = generator.chance(0.3)
    eager = generator.chance(0.15)
    return Draw(
        copies=0 if eager else generator.choice((0, 1, 1, 2)),
        room=generator.between(4, 24) if shed else None,
        eager=eager,
        domain=generator.between(2, 8),
        hot=0.6 if skewed else 0.0,
        alerts=generator.chance(0.4),
        capacity=generator.between(6, 30) if generator.chance(0.3) else None,
        time=_event_time(generator) if generator.chance(0.5) else None,
    )


def _event_time(generator: Generator) -> EventTime:
    return EventTime(generator.choice((0, 2, 10)), generator.choice((None, None, 3_000_000)))


def stream(name: str) -> StreamDef:
    fields = tuple([Field(c, BIGINT) for c in COLUMNS])
    return StreamDef(name, fields, "ts", BIGINT, resolution_us=INSTANT_US)


def _column(leaf: int, column: int) -> Col:
    return Col(leaf * len(COLUMNS) + column, BIGINT)


def plans(generator: Generator) -> list[tuple[str, Node]]:
    """One or two queries, of type 1 or type 2, over X, Y, Z and V."""
    shapes = generator.sample(["one", "chain", "bushy", "pair"], generator.choice((1, 1, 2)))
    return [(f"q{i}", _plan(shape, generator)) for i, shape in enumerate(shapes)]


def _plan(shape: str, generator: Generator) -> Node:
    names = {"one": "XYZ", "pair": "XY", "chain": "XYZ", "bushy": "XYZV"}[shape]
    equalities = {
        "one": [((0, 0), (1, 0)), ((1, 0), (2, 0))],
        "pair": [((0, 0), (1, 0))],
        "chain": [((0, 0), (1, 0)), ((1, 1), (2, 1))],
        "bushy": [((0, 0), (1, 0)), ((2, 0), (3, 0)), ((1, 1), (2, 1))],
    }[shape]
    leaves = []
    for name in names:
        window = TimeWindow(generator.between(10, 80))
        leaf: Node = Window(Scan(stream(name)), window)
        if generator.chance(0.2):
            leaf = Filter(leaf, call("<", Col(1, BIGINT), Lit(generator.between(2, 6), BIGINT)))
        leaves.append(leaf)
    conditions: list[Expr] = [call("=", _column(*a), _column(*b)) for a, b in equalities]
    if generator.chance(0.2):
        conditions.append(call("<=", _column(0, 1), _column(len(names) - 1, 1)))
    joined = Join(tuple(leaves), conjunction(tuple(conditions)))
    picked = [_column(leaf, generator.below(2)) for leaf in range(len(names))]
    return Project(joined, tuple(picked), tuple([f"c{i}" for i in range(len(picked))]))


def expected(
    plan: Node, query: JoinQuery, tuples: Iterable[Tup], horizon: int, upto: int
) -> list[Change]:
    """The reference's changelog in [horizon, upto) on these tuples."""
    inputs: dict[str, list[Arrival]] = {s: [] for s in query.streams}
    partitions: dict[str, int] = {}
    ordered = sorted(tuples, key=lambda t: (t.ts, t.source, t.seq))
    for position, tup in enumerate(ordered):
        if tup.stream in inputs and tup.ts < upto:
            partition = partitions.setdefault(tup.source, len(partitions))
            inputs[tup.stream].append(Arrival(partition, tup.ts, position, tup.values))
    horizons = dict.fromkeys(query.streams, horizon)
    return [c for c in evaluate(plan, inputs, horizons=horizons) if c.ts < upto]
