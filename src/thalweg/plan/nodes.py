"""Plan nodes: the relational algebra over time, plus windows and relation-to-stream operators.

Every node is a stream or a relation and checks itself when built, so a wrong plan can't exist.
A relation obeys one law: its content at an instant is the relational operator on its inputs'
contents at that instant. A stream's tuples carry the instant at which they appear.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from thalweg.plan.aggregates import AggCall
from thalweg.plan.catalog import Field, StreamDef
from thalweg.plan.coherency.tolerance import Deviation, RelativeDeviation, Tolerance
from thalweg.plan.expr import TRUE, Col, Expr, Lit, columns_of
from thalweg.plan.functions import call
from thalweg.plan.types import BOOLEAN, INTERVAL, NULL, VARCHAR
from thalweg.plan.windows import RowsWindow, SessionWindow, TimeWindow, WindowSpec

Schema = tuple[Field, ...]
BOUND_NAMES = ("window_start", "window_end")


class PlanError(ValueError):
    """A plan that breaks a rule of the algebra."""


@dataclass(frozen=True, slots=True)
class Scan:
    """A base stream or base relation."""

    stream: StreamDef

    @property
    def schema(self) -> Schema:
        return self.stream.fields

    @property
    def is_stream(self) -> bool:
        return not self.stream.is_relation


@dataclass(frozen=True, slots=True)
class Tolerant:
    """Of a base stream the rows that a reader needs who is content with less: by key, those whose
    divergence from the last one that passed exceeds the tolerance. By age, a row passes later than
    it came, and is stamped so; all others keep their instant.
    """

    input: Node
    tolerance: Tolerance
    column: int | None = None  # whose value must not deviate; None: rows or instants are counted
    per: tuple[int, ...] = ()  # the columns that make the key

    def __post_init__(self) -> None:
        if not isinstance(self.input, Scan) or not self.input.is_stream:
            raise PlanError("a tolerance applies to a base stream")
        by_value = isinstance(self.tolerance, Deviation | RelativeDeviation)
        if by_value != (self.column is not None):
            raise PlanError("a deviation is that of a column, and nothing else is")
        used = frozenset(self.per if self.column is None else (*self.per, self.column))
        _check_indexes(used, self.input, "TOLERANCE")
        if self.column is not None and not self.schema[self.column].type.is_numeric:
            raise PlanError("only numbers deviate")

    @property
    def schema(self) -> Schema:
        return self.input.schema

    @property
    def stream(self) -> StreamDef:
        assert isinstance(self.input, Scan)
        return self.input.stream

    is_stream = True


@dataclass(frozen=True, slots=True)
class DueRows:
    """Of a stream of due rows (`runtime/network/labels/labels.py`) those of one tolerance class:
    whose label, in `column`, has its number."""

    input: Node
    column: int
    number: int

    def __post_init__(self) -> None:
        if not isinstance(self.input, Scan) or not self.input.is_stream:
            raise PlanError("rows are due of a base stream")
        _check_indexes(frozenset((self.column,)), self.input, "a tolerance class")
        if self.schema[self.column].type != VARCHAR:
            raise PlanError("a label is a text")

    @property
    def is_due(self) -> Expr:
        """The condition that says the same."""
        label = self.schema[self.column]
        return call(
            "has_any", Col(self.column, label.type, label.name), Lit(str(self.number), VARCHAR)
        )

    @property
    def schema(self) -> Schema:
        return self.input.schema

    is_stream = True


@dataclass(frozen=True, slots=True)
class Window:
    """Stream to relation: each tuple is in it for the interval that `spec` gives."""

    input: Node
    spec: WindowSpec

    def __post_init__(self) -> None:
        if not self.input.is_stream:
            raise PlanError("a window applies to a stream, not to a relation")
        if isinstance(self.spec, RowsWindow | SessionWindow):
            _check_indexes(frozenset(self.spec.partition_by), self.input, "Partition By")

    @property
    def schema(self) -> Schema:
        bounds = self.spec.bounds
        if bounds is None:
            return self.input.schema
        return (*self.input.schema, *(Field(name, bounds.type) for name in BOUND_NAMES))

    is_stream = False


@dataclass(frozen=True, slots=True)
class Filter:
    input: Node
    predicate: Expr

    def __post_init__(self) -> None:
        _check_relation(self.input)
        _check_predicate(self.predicate, self.input.schema)

    @property
    def schema(self) -> Schema:
        return self.input.schema

    is_stream = False


@dataclass(frozen=True, slots=True)
class Project:
    input: Node
    exprs: tuple[Expr, ...]
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        _check_relation(self.input)
        if len(self.exprs) != len(self.names):
            raise PlanError("a projection has as many names as expressions")
        for e in self.exprs:
            _check_indexes(columns_of(e), self.input, "projection")

    @property
    def schema(self) -> Schema:
        return tuple(Field(n, e.type) for n, e in zip(self.names, self.exprs, strict=True))

    is_stream = False


@dataclass(frozen=True, slots=True)
class Join:
    """Inner join of any number of relations; the condition is over their columns in a row."""

    inputs: tuple[Node, ...]
    condition: Expr = TRUE

    def __post_init__(self) -> None:
        if len(self.inputs) < 2:
            raise PlanError("a join has two inputs or more")
        for node in self.inputs:
            _check_relation(node)
        _check_predicate(self.condition, self.schema)

    @property
    def schema(self) -> Schema:
        return tuple(f for node in self.inputs for f in node.schema)

    is_stream = False


@dataclass(frozen=True, slots=True)
class LeftJoin:
    """Every left row with its matches, or once with NULLs where there is none."""

    left: Node
    right: Node
    condition: Expr

    def __post_init__(self) -> None:
        _check_relation(self.left)
        _check_relation(self.right)
        _check_predicate(self.condition, self.schema)

    @property
    def schema(self) -> Schema:
        return self.left.schema + self.right.schema

    is_stream = False


@dataclass(frozen=True, slots=True)
class Mark:
    """The input's rows, each with one more BOOLEAN column that answers a sub-query predicate.

    The sub-query's rows that belong to an input row are those for which `correlation` is true.
    Without `match` the mark is EXISTS: whether there is such a row. With `match` it is IN: true if
    `match` is true for one of them, else NULL if it is NULL for one of them, else false. Both
    expressions see the input's columns followed by the sub-query's.
    """

    input: Node
    subquery: Node
    correlation: Expr = TRUE
    match: Expr | None = None

    def __post_init__(self) -> None:
        _check_relation(self.input)
        _check_relation(self.subquery)
        both = self.input.schema + self.subquery.schema
        _check_predicate(self.correlation, both)
        if self.match is not None:
            _check_predicate(self.match, both)

    @property
    def schema(self) -> Schema:
        return (*self.input.schema, Field("mark", BOOLEAN))

    is_stream = False


@dataclass(frozen=True, slots=True)
class Aggregate:
    """GROUP BY `keys`; the output row is the keys, then the aggregates.

    Without keys there is one row from the first instant on at which the input was not empty.
    """

    input: Node
    keys: tuple[Expr, ...]
    aggregates: tuple[AggCall, ...]
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        _check_relation(self.input)
        if len(self.names) != len(self.keys) + len(self.aggregates):
            raise PlanError("an aggregate names each key and each aggregate")
        if not self.names:
            raise PlanError("an aggregate has a key or an aggregate function")
        args = tuple(a.arg for a in self.aggregates if a.arg is not None)
        for e in (*self.keys, *args):
            _check_indexes(columns_of(e), self.input, "aggregate")

    @property
    def schema(self) -> Schema:
        types = [k.type for k in self.keys] + [a.type for a in self.aggregates]
        return tuple(Field(n, t) for n, t in zip(self.names, types, strict=True))

    is_stream = False


@dataclass(frozen=True, slots=True)
class Distinct:
    input: Node

    def __post_init__(self) -> None:
        _check_relation(self.input)

    @property
    def schema(self) -> Schema:
        return self.input.schema

    is_stream = False


@dataclass(frozen=True, slots=True)
class SortKey:
    """One expression of ORDER BY; NULL comes before all values, or behind."""

    expr: Expr
    descending: bool = False
    nulls_last: bool = False


@dataclass(frozen=True, slots=True)
class TopK:
    """The `count` first rows, of each value of the partition's expressions if there are any.

    Rows that the keys do not tell apart are in order of their columns, NULL first.
    """

    input: Node
    keys: tuple[SortKey, ...]
    count: int
    partition_by: tuple[Expr, ...] = ()

    def __post_init__(self) -> None:
        _check_relation(self.input)
        if self.count < 1:
            raise PlanError("the first rows are at least one")
        for e in (*(k.expr for k in self.keys), *self.partition_by):
            _check_indexes(columns_of(e), self.input, "ORDER BY")

    @property
    def schema(self) -> Schema:
        return self.input.schema

    is_stream = False


class SetKind(enum.Enum):
    UNION = "UNION"
    EXCEPT = "EXCEPT"
    INTERSECT = "INTERSECT"


@dataclass(frozen=True, slots=True)
class SetOp:
    """UNION, EXCEPT, INTERSECT as in SQL: sets, or bags with ALL. Names are the left side's."""

    kind: SetKind
    all: bool
    left: Node
    right: Node

    def __post_init__(self) -> None:
        _check_relation(self.left)
        _check_relation(self.right)
        left, right = ([f.type for f in n.schema] for n in (self.left, self.right))
        if left != right:
            raise PlanError(f"{self.kind.value} needs equal column types on both sides")

    @property
    def schema(self) -> Schema:
        return self.left.schema

    is_stream = False


class StreamKind(enum.Enum):
    ISTREAM = "ISTREAM"
    DSTREAM = "DSTREAM"
    RSTREAM = "RSTREAM"


@dataclass(frozen=True, slots=True)
class ToStream:
    """Relation to stream: what entered (ISTREAM), what left (DSTREAM), all of it (RSTREAM)."""

    kind: StreamKind
    input: Node

    def __post_init__(self) -> None:
        _check_relation(self.input)

    @property
    def schema(self) -> Schema:
        return self.input.schema

    is_stream = True


Node = (
    Scan
    | Tolerant
    | DueRows
    | Window
    | Filter
    | Project
    | Join
    | LeftJoin
    | Mark
    | Aggregate
    | Distinct
    | TopK
    | SetOp
    | ToStream
)


def inputs_of(node: Node) -> tuple[Node, ...]:
    match node:
        case Scan():
            return ()
        case Join(inputs, _):
            return inputs
        case LeftJoin(left, right, _) | SetOp(_, _, left, right):
            return (left, right)
        case Mark(input, subquery, _, _):
            return (input, subquery)
        case _:
            return (node.input,)


def with_inputs(node: Node, inputs: tuple[Node, ...]) -> Node:
    match node:
        case Scan():
            return node
        case Join():
            return replace(node, inputs=inputs)
        case LeftJoin() | SetOp():
            return replace(node, left=inputs[0], right=inputs[1])
        case Mark():
            return replace(node, input=inputs[0], subquery=inputs[1])
        case _:
            return replace(node, input=inputs[0])


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it, parents first."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(inputs_of(node)))


def transform(node: Node, change: Callable[[Node], Node]) -> Node:
    """Rebuild bottom-up with `change` applied to every node."""
    return change(with_inputs(node, tuple(transform(n, change) for n in inputs_of(node))))


def base_streams(node: Node) -> tuple[StreamDef, ...]:
    """The base streams and relations below, each once, in order of first appearance."""
    # By name, which is unique in a catalog and quicker to look up than all that a stream is.
    return tuple({n.stream.name: n.stream for n in walk(node) if isinstance(n, Scan)}.values())


def resolution_us(node: Node) -> int:
    """The one resolution of all inputs; a query over inputs that disagree is an error."""
    found = {s.resolution_us: s.name for s in base_streams(node)}
    if len(found) > 1:
        detail = ", ".join(f"{name} counts in {us} µs" for us, name in sorted(found.items()))
        raise PlanError(f"the inputs of one query must agree on RESOLUTION: {detail}")
    return next(iter(found))


def never_retracts(node: Node) -> bool:
    """Whether a relation's changelog provably never has a minus (so a window on it may stand)."""
    match node:
        case Scan():
            return not node.stream.is_relation
        case Window(_, spec):
            return isinstance(spec, TimeWindow) and spec.length is None
        case Filter() | Project() | Distinct():
            return never_retracts(node.input)
        case Join():
            return all(never_retracts(n) for n in node.inputs)
        case SetOp(kind, _, left, right):
            return kind is not SetKind.EXCEPT and never_retracts(left) and never_retracts(right)
        case ToStream() | Tolerant() | DueRows():
            return True
        case _:
            return False


# --- checks -------------------------------------------------------------------------------------


def _check_relation(node: Node) -> None:
    if node.is_stream:
        raise PlanError("a stream needs a window before it can be used as a relation")


def _check_indexes(used: frozenset[int], node: Any, where: str) -> None:
    if used and max(used) >= len(node.schema):
        raise PlanError(f"{where}: column {max(used)} of {len(node.schema)} does not exist")


def _check_predicate(predicate: Expr, schema: Schema) -> None:
    used = columns_of(predicate)
    if used and max(used) >= len(schema):
        raise PlanError(f"predicate: column {max(used)} of {len(schema)} does not exist")
    if predicate.type not in (BOOLEAN, NULL):
        raise PlanError(f"a predicate is BOOLEAN, not {predicate.type}")


def check_output(node: Node) -> None:
    """What a query may print: no INTERVAL columns."""
    for f in node.schema:
        if f.type == INTERVAL:
            raise PlanError(f"column {f.name} is an INTERVAL; print EXTRACT(SECOND FROM …) of it")
