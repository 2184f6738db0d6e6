"""CQL queries as COSMOS sees them: each one operator over the substreams of its interest (3.1.1).

A stream is cut into substreams along the column that most queries compare with constants: where a
range of some query begins or ends, a substream does. So a query's profile is exactly a set of
substreams, but for what it says about other columns. The rows with NULL in that column are a
substream of their own, as they are in no range. Ranges are those of the query's normal form
(`sharing`); a query that has none wants all of its streams.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from thalweg.placement.building import ProblemBuilder
from thalweg.placement.from_cql.problem import OF_EQUALITY, OF_OTHERS, Measured
from thalweg.placement.problem import Hosts, Problem
from thalweg.plan.catalog import QueryDef
from thalweg.plan.expr import Col
from thalweg.plan.nodes import Node, Scan, inputs_of
from thalweg.sharing.core import Core, NormalQuery
from thalweg.sharing.normal import normalise
from thalweg.sharing.ranges import EVERYTHING, Bound, Range

Edge = tuple[Any, int]  # where a substream begins: before (0) or behind (1) a value


@dataclass(frozen=True, slots=True)
class Wish:
    """What one query wants of one stream: for each column that it limits, the range."""

    stream: str
    ranges: dict[str, Range]


@dataclass(frozen=True, slots=True)
class Cuts:
    """A stream's substreams: between neighbouring edges, outside of all, and NULL."""

    stream: str
    column: str | None  # None: nobody limits anything, and the stream is one substream
    edges: tuple[Edge, ...] = ()

    @property
    def names(self) -> list[str]:
        if self.column is None:
            return [self.stream]
        bounds = [None, *self.edges, None]
        parts = [_between(a, b) for a, b in pairwise(bounds)]
        return [f"{self.stream}[{self.column} {part}]" for part in (*parts, "NULL")]

    def wanted(self, wish: Wish) -> list[int]:
        """By number in `names`."""
        values = wish.ranges.get(self.column or "", EVERYTHING)
        if values == EVERYTHING:
            return list(range(len(self.names)))
        if values.is_empty:
            return []
        first = 0 if values.low is None else self.edges.index(_low(values.low)) + 1
        last = len(self.edges) if values.high is None else self.edges.index(_high(values.high))
        return list(range(first, last + 1))


def problem_of_interests(
    hosts: Hosts, queries: Sequence[QueryDef], measured: Measured, proxies: Sequence[int] = ()
) -> Problem:
    """A problem whose base streams are substreams, and whose operators are whole queries."""
    forms = [normalise(query.plan) for query in queries]
    wishes = [
        _of_core(form.core) if isinstance(form, NormalQuery) else _of_plan(query.plan)
        for form, query in zip(forms, queries, strict=True)
    ]
    builder = ProblemBuilder(hosts)
    cuts = {c.stream: c for c in cut_streams(w for wish in wishes for w in wish)}
    for number, (query, form, wish) in enumerate(zip(queries, forms, wishes, strict=True)):
        inputs = [s for w in wish for s in _substreams(builder, cuts[w.stream], w, measured)]
        read = sum(builder.rate_bps(s) for s in inputs)
        key = form if isinstance(form, NormalQuery) else query.name
        share = _share(form.core) if isinstance(form, NormalQuery) else 1.0
        rate = measured.rate_bps.get(query.name, share * read)
        result = builder.stream(key, query.name, rate)
        cpu = measured.cpu.get(query.name, measured.cpu_per_bps * read)
        builder.operator(query.name, sorted(set(inputs)), result, cpu)
        where = {"proxy": proxies[number]} if proxies else {}
        builder.query(query.name, result, **where)
    return builder.build()


def cut_streams(wishes: Iterable[Wish]) -> list[Cuts]:
    """Each stream along the column that is limited most often; of equals, the first by name."""
    by_stream: dict[str, list[Wish]] = {}
    for wish in wishes:
        by_stream.setdefault(wish.stream, []).append(wish)
    found = []
    for stream, all_ in by_stream.items():
        often = Counter(column for wish in all_ for column in wish.ranges)
        if not often:
            found.append(Cuts(stream, None))
            continue
        column = min(often, key=lambda c: (-often[c], c))
        edges: set[Edge] = set()
        for wish in all_:
            values = wish.ranges.get(column, EVERYTHING)
            if not values.is_empty:
                edges |= {_low(values.low)} if values.low is not None else set()
                edges |= {_high(values.high)} if values.high is not None else set()
        found.append(Cuts(stream, column, tuple(sorted(edges))))
    return found


def _substreams(builder: ProblemBuilder, cuts: Cuts, wish: Wish, measured: Measured) -> list[int]:
    """Rates that were not measured: equal parts of the stream's, and nothing of it NULL."""
    if wish.stream not in measured.homes or wish.stream not in measured.rate_bps:
        raise ValueError(f"stream {wish.stream}: its home and its rate must be known")
    names = cuts.names
    parts = len(names) if cuts.column is None else len(names) - 1
    wanted = []
    for number in cuts.wanted(wish) or [0]:  # a stream is read even where no row can qualify
        estimate = measured.rate_bps[wish.stream] / parts if number < parts else 0.0
        rate = measured.rate_bps.get(names[number], estimate)
        home = measured.homes[wish.stream]
        wanted.append(builder.stream(names[number], names[number], rate, home))
    return wanted


def _of_core(core: Core) -> list[Wish]:
    offsets = core.offsets
    found = []
    for leaf, stream in enumerate(core.streams):
        mine = {
            stream.fields[expr.index - offsets[leaf]].name: values
            for expr, values in core.ranges
            if isinstance(expr, Col) and offsets[leaf] <= expr.index < offsets[leaf + 1]
        }
        found.append(Wish(stream.name, mine))
    return found


def _of_plan(node: Node) -> list[Wish]:
    if isinstance(node, Scan):
        return [Wish(node.stream.name, {})]
    return [wish for child in inputs_of(node) for wish in _of_plan(child)]


def _share(core: Core) -> float:
    """What joins and other conditions leave; ranges are in the substreams' rates already."""
    return float(OF_EQUALITY ** len(core.joins) * OF_OTHERS ** len(core.residuals))


def _low(bound: Bound) -> Edge:
    return _edge(bound.value, 0 if bound.closed else 1)


def _high(bound: Bound) -> Edge:
    return _edge(bound.value, 1 if bound.closed else 0)


def _edge(value: Any, side: int) -> Edge:
    """Behind 9 and before 10 are the same place for integers."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    return (value + 1, 0) if whole and side == 1 else (value, side)


def _between(low: Edge | None, high: Edge | None) -> str:
    if low is not None and high is not None and low[0] == high[0]:
        return f"= {low[0]}"
    left = "(-∞" if low is None else f"{'[' if low[1] == 0 else '('}{low[0]}"
    right = "∞)" if high is None else f"{high[0]}{')' if high[1] == 0 else ']'}"
    return f"{left}, {right}"
