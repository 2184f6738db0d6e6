"""Queries of the scenario `moves`, and what the reference says about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from thalweg.adapt.moves.operators import COUNT, MAX, MIN, SUM, Operator
from thalweg.adapt.moves.query import Query, Row
from thalweg.engine.arrivals import Arrival
from thalweg.engine.reference import evaluate
from thalweg.overlay.generator import Generator
from thalweg.plan.aggregates import AggCall
from thalweg.plan.catalog import Field, StreamDef
from thalweg.plan.expr import Col, Expr, conjunction
from thalweg.plan.functions import call
from thalweg.plan.nodes import Aggregate, Distinct, Join, Node, Project, Scan, Window
from thalweg.plan.types import BIGINT
from thalweg.plan.windows import TimeWindow

STREAMS = "ABCD"
BUCKETS = 128
FINE = 1 << 24  # as narrow as the engine's narrowest bucket

Change = tuple[int, str, tuple[object, ...]]


def drawn_query(generator: Generator) -> Query:
    """Two to four inputs, windows with and without slide, now and then a residual."""
    count = generator.choice((2, 3, 3, 3, 4))
    windows = []
    for _ in range(count):
        slide = generator.choice((1, 1, 1, 4))
        windows.append(TimeWindow(generator.between(6, 40 if count < 4 else 24), slide))
    residual = ((0, count - 1),) if generator.chance(0.3) else ()
    return Query(tuple(STREAMS[:count]), tuple(windows), BUCKETS, residual)


def drawn_operator(generator: Generator, key: int) -> Operator:
    """An aggregate or DISTINCT, with or without the key among its keys; below where it may be."""
    values = tuple(range(key))
    keys = (generator.choice(values),) if generator.chance(0.4) else ()
    calls: tuple[tuple[str, int], ...] = ()
    if generator.chance(0.7):
        calls = ((COUNT, -1),)
        calls += tuple(
            [(f, generator.choice(values)) for f in generator.sample((SUM, MIN, MAX), 2)]
        )
    if generator.chance(0.6) or not (keys or calls):
        keys = (*keys, key)
    above = key not in keys or generator.chance(0.3)
    return Operator(keys, calls, above)


def plan_of(query: Query, instant_us: int) -> Node:
    """The same as a plan, for the reference."""
    leaves = []
    for name, window in zip(query.streams, query.windows, strict=True):
        fields = (Field("k", BIGINT), Field("v", BIGINT))
        stream = StreamDef(name, fields, "ts", BIGINT, resolution_us=instant_us)
        leaves.append(Window(Scan(stream), window))
    count = len(leaves)
    equal: list[Expr] = [
        call("=", Col(0, BIGINT), Col(2 * leaf, BIGINT)) for leaf in range(1, count)
    ]
    equal += [call("<=", Col(2 * i + 1, BIGINT), Col(2 * j + 1, BIGINT)) for i, j in query.residual]
    picked = [Col(2 * leaf + 1, BIGINT) for leaf in range(count)] + [Col(0, BIGINT)]
    names = tuple([f"c{i}" for i in range(count + 1)])
    return Project(Join(tuple(leaves), conjunction(tuple(equal))), tuple(picked), names)


def operator_on(operator: Operator, join: Node) -> Node:
    """The operator as a plan, over the rows of the join."""
    if not operator.calls:
        columns = tuple([Col(c, BIGINT) for c in operator.keys])
        return Distinct(Project(join, columns, tuple([f"d{c}" for c in operator.keys])))
    calls = [AggCall(f, None if f == COUNT else Col(c, BIGINT)) for f, c in operator.calls]
    keys = tuple([Col(c, BIGINT) for c in operator.keys])
    names = tuple([f"a{i}" for i in range(len(keys) + len(calls))])
    return Aggregate(join, keys, tuple(calls), names)


def wanted(
    query: Query, instant_us: int, published: Mapping[int, Sequence[Row]], upto: int
) -> list[Change]:
    """The reference's changelog below an instant.

    Key by key, as different keys never meet; but for an operator whose groups cross keys: it
    gets the changes of all keys as a relation.
    """
    plan, operator = plan_of(query, instant_us), query.operator
    crosses = operator is not None and len(query.streams) not in operator.keys
    if operator is not None and not crosses:
        plan = operator_on(operator, plan)
    found: list[Change] = []
    for key in sorted({row[2] for rows in published.values() for row in rows}):
        inputs = {
            query.streams[leaf]: [
                Arrival(0, r[0], r[1], r[2:]) for r in rows if r[0] < upto and r[2] == key
            ]
            for leaf, rows in published.items()
        }
        found += [(c.ts, c.op, c.row) for c in evaluate(plan, inputs) if c.ts < upto]
    found.sort(key=_order)
    if operator is None or not crosses:
        return found
    fields = tuple([Field(f"c{i}", BIGINT) for i in range(len(query.streams) + 1)])
    joined = StreamDef("R", fields, "ts", BIGINT, is_relation=True, resolution_us=instant_us)
    changes = [Arrival(0, c[0], i, c[2], c[1]) for i, c in enumerate(found)]
    above = evaluate(operator_on(operator, Scan(joined)), {"R": changes})
    return sorted([(c.ts, c.op, c.row) for c in above if c.ts < upto], key=_order)


def _order(change: Change) -> tuple[int, bool, tuple[object, ...]]:
    return change[0], change[1] == "+", change[2]


def difference(found: Sequence[Change], expected: Sequence[Change]) -> str | None:
    if list(found) == list(expected):
        return None
    missing, extra = Counter(expected) - Counter(found), Counter(found) - Counter(expected)
    return (
        f"{sum(missing.values())} changes missing (first {min(missing, default=None)}), "
        f"{sum(extra.values())} too many (first {min(extra, default=None)}) of {len(expected)}"
    )
