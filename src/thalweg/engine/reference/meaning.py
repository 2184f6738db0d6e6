"""What a plan means: relations as functions of time, streams as ordered tuples.

A relation is a function from instants to bags, together with the instants at which the bag can
change. Each operator obeys one law: its bag at an instant is the relational operator on its
inputs' bags at that instant. Everything is computed from scratch at every instant looked at: slow
on purpose, so that it can be read against the rules line by line.

When all inputs have ended, time runs on until the last interval closes: nothing happens after the
last of a relation's instants, and RSTREAM ends there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise

from thalweg.engine.arrivals import Arrival, Row
from thalweg.engine.changelog import Change, net, row_key
from thalweg.engine.reference import bags, tolerance
from thalweg.engine.reference.bags import Bag
from thalweg.engine.reference.windows import Stamped, content, turns
from thalweg.plan.nodes import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    LeftJoin,
    Mark,
    Node,
    Project,
    Scan,
    SetOp,
    StreamKind,
    Tolerant,
    TopK,
    ToStream,
    Window,
    base_streams,
    inputs_of,
    walk,
)
from thalweg.plan.windows import FOREVER, HopWindow, TimeWindow


@dataclass(frozen=True, slots=True)
class Stream:
    tuples: list[Stamped]  # in the stream's order
    instants: frozenset[int]  # at which a tuple came or an interval below began or ended


@dataclass(frozen=True, slots=True)
class Relation:
    at: Callable[[int], Bag]
    instants: frozenset[int]  # `at` is constant from each of them to the next


@dataclass(frozen=True, slots=True)
class ClassStart:
    """A decision: for a query, a tolerance class counts the tuples from `horizon` on; of what it
    let through before `since`, the query has only what was held then."""

    horizon: int
    since: int


@dataclass(frozen=True, slots=True)
class Meaning:
    """What nodes stand for, given the tuples of each base input (lower-cased name) in order.

    Only tuples that count are here: no late ones, no rejected ones, none below the horizon.
    An input that has not ended has its watermark in `watermarks`; others have ended. Tolerance
    classes that began before the query see `all_tuples`, those below its horizon too.
    """

    tuples: Mapping[str, tuple[Arrival, ...]]
    watermarks: Mapping[str, int]
    all_tuples: Mapping[str, tuple[Arrival, ...]] = field(default_factory=dict)
    classes: Mapping[Tolerant, ClassStart] = field(default_factory=dict)

    def frontier(self, node: Node) -> int:
        """Instants below it are final for this node."""
        return min(self.watermarks.get(s.name.lower(), FOREVER) for s in base_streams(node))

    def stream(self, node: Node) -> Stream:
        match node:
            case Scan():
                arrivals = self.tuples[node.stream.name.lower()]
                tuples = [Stamped(a.timestamp, a.row) for a in arrivals]
                if node.stream.is_placed:
                    tuples = [
                        replace(t, row=(*t.row, t.timestamp, place))
                        for place, t in enumerate(tuples)
                    ]
                return Stream(tuples, frozenset(t.timestamp for t in tuples))
            case Tolerant():
                return self._tolerant(node)
            case ToStream():
                return self.derived(node)
            case _:
                raise ValueError("not a stream")

    def _tolerant(self, node: Tolerant) -> Stream:
        """Nothing but the rows is filtered: the instants of all tuples are still there."""
        name = node.stream.name.lower()
        found = tolerance.passed(node, self.tuples[name])
        start = self.classes.get(node)
        if start is not None:
            counted = [a for a in self.all_tuples[name] if a.timestamp >= start.horizon]
            found = tolerance.held(tolerance.passed(node, counted), node, start.since)
        tuples = tolerance.stamped(found)
        return Stream(tuples, self.stream(node.input).instants | {t.timestamp for t in tuples})

    def relation(self, node: Node) -> Relation:
        match node:
            case Scan():
                return self._base_relation(node)
            case Window():
                return self._window(node)
            case Aggregate():
                return self._aggregate(node)
            case _:
                inputs = [self.relation(child) for child in inputs_of(node)]
                instants = frozenset[int]().union(*(r.instants for r in inputs))
                return Relation(lambda now: _operate(node, [r.at(now) for r in inputs]), instants)

    def _base_relation(self, node: Scan) -> Relation:
        changes = self.tuples[node.stream.name.lower()]

        def at(now: int) -> Bag:
            rows: Bag = []
            for change in changes:
                if change.timestamp <= now:
                    rows.append(change.row) if change.op == "+" else rows.remove(change.row)
            return rows

        return Relation(at, frozenset(change.timestamp for change in changes))

    def _window(self, node: Window) -> Relation:
        stream = self.stream(node.input)
        instants = stream.instants | frozenset(turns(node.spec, stream.tuples))
        return Relation(lambda now: content(node.spec, stream.tuples, now), instants)

    def _aggregate(self, node: Aggregate) -> Relation:
        """The one operator with a memory: without keys, has the input ever had a row?"""
        source = self.relation(node.input)
        born = next((t for t in sorted(source.instants) if source.at(t)), FOREVER)
        return Relation(
            lambda now: bags.grouped(node, source.at(now), now >= born), source.instants
        )

    def derived(self, node: ToStream, start: int | None = None) -> Stream:
        """The stream that a relation makes, ordered by (timestamp, row)."""
        source = self.relation(node.input)
        match node.kind:
            case StreamKind.ISTREAM:
                tuples = [Stamped(c.ts, c.row) for c in changelog(source, start) if c.op == "+"]
            case StreamKind.DSTREAM:
                tuples = [Stamped(c.ts, c.row) for c in changelog(source, start) if c.op == "-"]
            case StreamKind.RSTREAM:
                tuples = list(self._snapshots(node.input, source, start))
        tuples.sort(key=lambda t: (t.timestamp, row_key(t.row)))
        return Stream(tuples, source.instants)

    def _snapshots(self, node: Node, source: Relation, start: int | None) -> Iterator[Stamped]:
        """The whole relation, wherever a base input below has a tuple or a boundary passes."""
        arrived = {a.timestamp for s in base_streams(node) for a in self.tuples[s.name.lower()]}
        for now in arrived | set(self._boundaries(node, source)):
            if start is None or now >= start:
                yield from (Stamped(now, row) for row in source.at(now))

    def _boundaries(self, node: Node, source: Relation) -> Iterator[int]:
        """The slide boundaries of all windows below at which the relation is not empty."""
        slides = {
            n.spec.slide
            for n in walk(node)
            if isinstance(n, Window)
            and isinstance(n.spec, TimeWindow | HopWindow)
            and n.spec.slide > 1
        }
        if not source.instants:
            return
        frontier = self.frontier(node)
        end = frontier if frontier != FOREVER else max(source.instants) + 1
        for begin, next_begin in pairwise([*sorted(t for t in source.instants if t < end), end]):
            if source.at(begin):
                for slide in slides:
                    yield from range(-(-begin // slide) * slide, next_begin, slide)


def changelog(relation: Relation, start: int | None = None) -> list[Change]:
    """The differences from instant to instant; before `start` the relation counts as empty."""
    instants: Iterable[int] = relation.instants
    if start is not None:
        instants = {start, *(t for t in instants if t > start)}
    changes: list[Change] = []
    before: Counter[Row] = Counter()
    for now in sorted(instants):
        after = Counter(relation.at(now))
        changes += net(now, before, after)
        before = after
    return changes


def _operate(node: Node, inputs: list[Bag]) -> Bag:
    match node:
        case Filter():
            return bags.filtered(node, inputs[0])
        case Project():
            return bags.projected(node, inputs[0])
        case Join():
            return bags.joined(node, inputs)
        case LeftJoin():
            return bags.left_joined(node, *inputs)
        case Mark():
            return bags.marked(node, *inputs)
        case Distinct():
            return bags.distinct(inputs[0])
        case TopK():
            return bags.top(node, inputs[0])
        case SetOp():
            return bags.combined(node, *inputs)
        case _:
            raise ValueError(f"no operator on bags: {type(node).__name__}")
