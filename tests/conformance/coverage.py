"""What a workload exercises: counted, so that a test can show that the generators reach it all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from thalweg.engine.arrivals import Arrival
from thalweg.engine.reference import Outcome
from thalweg.plan import expr as ex
from thalweg.plan.aggregates import AGGREGATES
from thalweg.plan.cardinality import has_one_row_at_most
from thalweg.plan.functions import FUNCTIONS
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
    Tolerant,
    TopK,
    ToStream,
    Window,
    base_streams,
    walk,
)
from thalweg.plan.types import Kind
from thalweg.plan.windows import HopWindow, RowsWindow, SessionWindow, TimeWindow, WindowSpec

STREAM_KINDS = ("ISTREAM", "DSTREAM", "RSTREAM")
SET_KINDS = ("UNION", "EXCEPT", "INTERSECT")
WINDOW_KINDS = ("now", "range", "unbounded", "rows", "partition rows")
TOLERANCES = ("Deviation", "RelativeDeviation", "ChangesSince", "Age")
BOUNDED_KINDS = ("tumble", "hop", "session", "partition session")
CASTS = ("BOOLEAN", "INTEGER", "BIGINT", "DOUBLE", "DECIMAL", "VARCHAR", "DATE", "TIMESTAMP")

WANTED = frozenset(
    [
        *(f"window {kind}{slide}" for kind in WINDOW_KINDS for slide in ("", " slide")),
        *(f"window {kind}{b}" for kind in BOUNDED_KINDS for b in ("", " with bounds")),
        *(f"tolerance {kind}{per}" for kind in TOLERANCES for per in ("", " per key")),
        *(f"aggregate {name}" for name in (*AGGREGATES, "count(*)")),
        *(f"aggregate {name} distinct" for name in ("count", "sum", "avg")),
        *(f"{kind} {place}" for kind in STREAM_KINDS for place in ("on top", "inside")),
        *(f"{kind}{every}" for kind in SET_KINDS for every in ("", " ALL")),
        *("join of 2", "join of 3", "self join", "left join", "base relation", "case"),
        *("exists", "exists correlated", "in", "in correlated", "negated sub-query"),
        *("value", "value correlated", "value, first of each"),
        *("value in ON of a left join", "value in GROUP BY", "value in an aggregate"),
        *("top k", "top k descending", "top k nulls last"),
        *("group by", "global aggregate", "having", "distinct", "filter", "projection"),
        *("late tuple", "rejected minus", "NULL", "equal timestamps", "out of order"),
        *("two partitions", "empty input", "equal rows", "no output", "plus", "minus"),
    ]
)
# Held by the fixed script of generators/values.py; drawn queries use some of them.
WANTED_OF_VALUES = frozenset(
    [*(f"function {name}" for name in FUNCTIONS), *(f"cast to {kind}" for kind in CASTS), "case"]
)


def features(node: Node) -> Iterator[str]:
    """What stands in a plan."""
    if isinstance(node, ToStream):
        yield f"{node.kind.value} on top"
    for part in walk(node):
        yield from _of_node(part, inside=part is not node)
        for expression in _expressions(part):
            for e in ex.walk(expression):
                yield from _of_expression(e)


def _of_node(node: Node, inside: bool) -> Iterator[str]:
    match node:
        case Scan(stream):
            if stream.is_relation:
                yield "base relation"
        case Tolerant(_, tolerance, _, per):
            yield f"tolerance {type(tolerance).__name__}{' per key' if per else ''}"
        case Window(_, spec):
            yield f"window {window_kind(spec)}"
        case Filter(below, predicate):
            yield "having" if isinstance(below, Aggregate) else "filter"
            if isinstance(below, Mark) and any(
                isinstance(e, ex.Call) and e.function == "not" for e in ex.walk(predicate)
            ):
                yield "negated sub-query"
        case Project():
            yield "projection"
        case Join(inputs, _):
            yield f"join of {len(inputs)}"
            scans = [s for i in inputs for s in base_streams(i)]
            if len(set(scans)) < len(scans):
                yield "self join"
        case LeftJoin(left, right, _):
            yield _left_join(right)
            if _is_value(left) or _is_value(right):
                yield "value in ON of a left join"
        case Mark(_, _, correlation, match):
            kind = "exists" if match is None else "in"
            yield kind if correlation == ex.TRUE else f"{kind} correlated"
        case Aggregate(below, keys, calls, _):
            yield "group by" if keys else "global aggregate"
            if _is_value(below):
                width = len(below.left.schema)  # type: ignore[union-attr]
                if any(i >= width for k in keys for i in ex.columns_of(k)):
                    yield "value in GROUP BY"
                if any(i >= width for c in calls if c.arg for i in ex.columns_of(c.arg)):
                    yield "value in an aggregate"
            for call in calls:
                name = "count(*)" if call.arg is None else call.function
                yield f"aggregate {name}{' distinct' if call.distinct else ''}"
        case Distinct():
            yield "distinct"
        case TopK(_, keys, _, _):
            yield "top k"
            yield from ("top k descending" for k in keys if k.descending)
            yield from ("top k nulls last" for k in keys if k.nulls_last)
        case SetOp(kind, every, _, _):
            yield kind.value + (" ALL" if every else "")
        case ToStream(kind, _):
            if inside:
                yield f"{kind.value} inside"


def _is_value(node: Node) -> bool:
    return isinstance(node, LeftJoin) and _left_join(node.right).startswith("value")


def _left_join(right: Node) -> str:
    """What is joined: a sub-query that is a value has no projection above its last operator."""
    if has_one_row_at_most(right):
        return "value"
    if isinstance(right, Aggregate):
        return "value correlated"
    return "value, first of each" if isinstance(right, TopK) and right.partition_by else "left join"


def window_kind(spec: WindowSpec) -> str:
    slide = " slide" if spec.slide > 1 else ""
    match spec:
        case TimeWindow(None, _):
            return f"unbounded{slide}"
        case TimeWindow(length, _):
            return f"range{slide}" if length else f"now{slide}"
        case RowsWindow(_, _, keys):
            return f"partition rows{slide}" if keys else f"rows{slide}"
        case HopWindow(length, hop, bounds):
            return f"{'tumble' if length == hop else 'hop'}{' with bounds' if bounds else ''}"
        case SessionWindow(_, keys, bounds):
            partition = "partition " if keys else ""
            return f"{partition}session{' with bounds' if bounds else ''}"


def _expressions(node: Node) -> tuple[ex.Expr, ...]:
    match node:
        case Filter(_, predicate):
            return (predicate,)
        case Project(_, exprs, _):
            return exprs
        case Join(_, condition) | LeftJoin(_, _, condition):
            return (condition,)
        case Mark(_, _, correlation, match):
            return (correlation,) if match is None else (correlation, match)
        case Aggregate(_, keys, calls, _):
            return (*keys, *(c.arg for c in calls if c.arg is not None))
        case _:
            return ()


def _of_expression(expression: ex.Expr) -> Iterator[str]:
    match expression:
        case ex.Call(function, _, _):
            yield f"function {function}"
        case ex.Cast(_, target):
            kind = "DECIMAL" if target.kind is Kind.DECIMAL else target.kind.value
            yield f"cast to {kind}"
        case ex.Case():
            yield "case"


def input_features(inputs: Mapping[str, Sequence[Arrival]]) -> Iterator[str]:
    """What arrives."""
    for arrivals in inputs.values():
        stamps = [a.timestamp for a in arrivals]
        if not arrivals:
            yield "empty input"
        if any(None in a.row for a in arrivals):
            yield "NULL"
        if len(set(stamps)) < len(stamps):
            yield "equal timestamps"
        if stamps != sorted(stamps):
            yield "out of order"
        if len({a.partition for a in arrivals}) > 1:
            yield "two partitions"
        if max(Counter(a.row for a in arrivals).values(), default=0) > 1:
            yield "equal rows"


def outcome_features(outcome: Outcome) -> Iterator[str]:
    """What comes out."""
    if any(outcome.late.values()):
        yield "late tuple"
    if any(outcome.rejects.values()):
        yield "rejected minus"
    if not outcome.changes:
        yield "no output"
    yield from ({"+": "plus", "-": "minus"}[c.op] for c in outcome.changes)
