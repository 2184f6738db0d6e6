"""Physical operators: what a task runs, as frozen values that compare by structure.

Relation operators make deltas of interval rows, stream operators make stream rows (`frames`).
Operators that are equal are one operator: queries registered together share them by this.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from thalweg.engine.shared.frames import POS, TS, Types, name
from thalweg.plan.aggregates import AggCall
from thalweg.plan.catalog import PLACE
from thalweg.plan.coherency.tolerance import Tolerance
from thalweg.plan.expr import TRUE, Expr, columns_of
from thalweg.plan.nodes import SetKind, SortKey, StreamKind
from thalweg.plan.windows import IntervalWindow, RowsWindow, SessionWindow


def _bounds(window: IntervalWindow | SessionWindow) -> Types:
    return () if window.bounds is None else (window.bounds.type,) * 2


@dataclass(frozen=True, slots=True)
class BaseStream:
    """A base stream's accepted tuples, or a base relation's changes with their signs. (stream)"""

    stream: str
    types: Types
    signed: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """A base stream under a time window, filtered. Its state is the stream's SteM.

    A stamped source has the tuple's own instant as a last column, and a window's bounds are the
    last two. A placed one has, behind its own columns, the tuple's instant and its position. The
    predicate is over the stream's own columns.
    """

    stream: str
    types: Types
    window: IntervalWindow
    predicate: Expr = TRUE
    stamped: bool = False
    placed: bool = False

    @property
    def own(self) -> int:
        """How many columns are the stream's own."""
        added = self.stamped + 2 * (self.window.bounds is not None) + 2 * self.placed
        return len(self.types) - added

    def stored_name(self, column: int) -> str:
        """What a column is called in the stream's SteM."""
        if self.placed and column in (self.own, self.own + 1):
            return TS if column == self.own else POS
        is_stamp = self.stamped and column == len(self.types) - 1
        return TS if is_stamp else name(column)


@dataclass(frozen=True, slots=True)
class Changes:
    """A base relation; a minus that matches no row is rejected. State: multiplicities."""

    input: Exchange

    @property
    def types(self) -> Types:
        return self.input.types


@dataclass(frozen=True, slots=True)
class TolerantOf:
    """Of a base stream the rows that are due for a tolerance class, by key. (stream)

    State, kept with the input for all its classes: by key and class what passed last, and what
    waits."""

    input: Exchange
    tolerance: Tolerance
    column: int | None = None

    @property
    def types(self) -> Types:
        return self.input.types


@dataclass(frozen=True, slots=True)
class PlacedOf:
    """Rows that are due, with the instant and the position of each as two columns more (WITH
    POSITION). They are those of a class that others have without. (stream)"""

    input: TolerantOf

    @property
    def types(self) -> Types:
        return (*self.input.types, *(f.type for f in PLACE))


@dataclass(frozen=True, slots=True)
class DueOf:
    """Of a base stream the rows that fulfil a condition: those of a tolerance class. (stream)"""

    input: BaseStream
    predicate: Expr

    @property
    def types(self) -> Types:
        return self.input.types


@dataclass(frozen=True, slots=True)
class RowsOf:
    """A stream under a Rows window. State: the rows inside, per key."""

    input: Exchange
    window: RowsWindow

    @property
    def types(self) -> Types:
        return self.input.types


@dataclass(frozen=True, slots=True)
class SessionsOf:
    """A stream under a Session window. State: the tuples of sessions that have not ended."""

    input: Exchange
    window: SessionWindow

    @property
    def types(self) -> Types:
        return self.input.types + _bounds(self.window)


@dataclass(frozen=True, slots=True)
class TimeOf:
    """A derived stream under a time window."""

    input: StreamOp
    window: IntervalWindow

    @property
    def types(self) -> Types:
        return self.input.types + _bounds(self.window)


@dataclass(frozen=True, slots=True)
class Map:
    """Filter, then project."""

    input: Op
    predicate: Expr
    exprs: tuple[Expr, ...]

    @property
    def types(self) -> Types:
        return tuple(e.type for e in self.exprs)


@dataclass(frozen=True, slots=True)
class JoinKey:
    """Columns of different inputs that are equal in every result: (input, expression over it)."""

    members: tuple[tuple[int, Expr], ...]

    def member(self, position: int) -> Expr | None:
        return next((e for i, e in self.members if i == position), None)


@dataclass(frozen=True, slots=True)
class Join:
    """MJoin over SteMs: every input's delta probes the others, in an order chosen per tick.

    Conditions and output expressions are over the inputs' columns side by side.
    """

    inputs: tuple[Op, ...]
    keys: tuple[JoinKey, ...]
    conditions: tuple[Expr, ...]
    exprs: tuple[Expr, ...]

    @property
    def types(self) -> Types:
        return tuple(e.type for e in self.exprs)

    @property
    def offsets(self) -> tuple[int, ...]:
        """Where each input's columns begin among all."""
        starts = [0]
        for op in self.inputs:
            starts.append(starts[-1] + len(op.types))
        return tuple(starts)

    @property
    def wanted(self) -> list[list[int]]:
        """For each input, the columns of its own that anybody looks at."""
        used = {c for e in (*self.conditions, *self.exprs) for c in columns_of(e)}
        offsets = self.offsets
        wanted = [
            {c - offsets[i] for c in used if offsets[i] <= c < offsets[i + 1]}
            for i in range(len(self.inputs))
        ]
        for key in self.keys:
            for i, e in key.members:
                wanted[i] |= columns_of(e)
        return [sorted(w) or [0] for w in wanted]  # a frame without columns has no height

    def shared_keys(self, left: int, right: int) -> tuple[JoinKey, ...]:
        return tuple(k for k in self.keys if k.member(left) is not None and k.member(right))


@dataclass(frozen=True, slots=True)
class Union:
    """Bag union; an input with sign -1 is taken away."""

    inputs: tuple[tuple[int, Op], ...]

    @property
    def types(self) -> Types:
        return self.inputs[0][1].types


@dataclass(frozen=True, slots=True)
class Aggregate:
    """GROUP BY; without keys, or where `lasting`, a row stays once it is there."""

    input: Op
    keys: tuple[Expr, ...]
    aggregates: tuple[AggCall, ...]
    lasting: bool = False

    @property
    def types(self) -> Types:
        return tuple(k.type for k in self.keys) + tuple(a.type for a in self.aggregates)


@dataclass(frozen=True, slots=True)
class Partials:
    """What a stream's tuples add to each group, pane by pane (`panes`), for all windows over them.

    The input's rows last an instant, their own. Of each argument there are sums (`summed`), least
    and greatest values (`extremes`), or both.
    """

    input: Exchange
    keys: tuple[Expr, ...]
    args: tuple[Expr, ...]
    summed: tuple[bool, ...]
    extremes: tuple[bool, ...]
    width: int

    @property
    def types(self) -> Types:
        return tuple(e.type for e in (*self.keys, *self.args))


@dataclass(frozen=True, slots=True)
class Panes:
    """Partial aggregates under a sliding window; only an Aggregate can read them."""

    input: Partials
    window: IntervalWindow

    @property
    def types(self) -> Types:
        return self.input.types


@dataclass(frozen=True, slots=True)
class Distinct:
    input: Op

    @property
    def types(self) -> Types:
        return self.input.types


@dataclass(frozen=True, slots=True)
class TopK:
    """The first rows of each partition, whose rows meet in one task. State: all rows of the input,
    or the first ones alone where no row ever leaves (`grows`)."""

    input: Exchange
    keys: tuple[SortKey, ...]
    count: int
    grows: bool = False

    @property
    def types(self) -> Types:
        return self.input.types


@dataclass(frozen=True, slots=True)
class SetOp:
    """EXCEPT, INTERSECT (with or without ALL) by the multiplicities of both sides."""

    kind: SetKind
    all: bool
    left: Op
    right: Op

    @property
    def types(self) -> Types:
        return self.left.types


@dataclass(frozen=True, slots=True)
class StreamOf:
    """ISTREAM, DSTREAM or RSTREAM of a relation. (stream)

    RSTREAM speaks when an input does: `relations` are the base relations below, whose accepted
    changes every task must hear of.
    """

    kind: StreamKind
    input: Exchange
    relations: tuple[Exchange, ...] = ()

    @property
    def types(self) -> Types:
        return self.input.types


@dataclass(frozen=True, slots=True)
class Exchange:
    """The input's rows, brought to the task that owns their key; all rows to all without one.

    Where they are with their owner already, they stay.
    """

    input: AnyOp
    keys: tuple[Expr, ...] | None
    stays: bool = False

    @property
    def types(self) -> Types:
        return self.input.types


@dataclass(frozen=True, slots=True)
class Output:
    """A query's result: a relation's changelog (no kind), or its ISTREAM, DSTREAM or RSTREAM."""

    input: Exchange
    kind: StreamKind | None
    relations: tuple[Exchange, ...] = ()  # as in StreamOf

    @property
    def types(self) -> Types:
        return self.input.types


@dataclass(frozen=True, slots=True)
class Group:
    """A group's representative: its interval rows are written as they are, for members to read.

    The input's last columns are the timestamps of the tuples that a row was made of, one for each
    of the leaves, whose windows slide by `slides`. `keeps_ends` says whether rows can end for some
    member.
    """

    input: Exchange
    slides: tuple[int, ...]
    keeps_ends: bool

    @property
    def types(self) -> Types:
        return self.input.types


@dataclass(frozen=True, slots=True)
class Matches:
    """A group's rows, once for every member that wants them, with the member's place in front.

    Rows come and go as weighted events. The members are those of the family that the tick's
    specification names for the group.
    """

    input: Group
    name: str
    types: Types


StreamOp = BaseStream | StreamOf | TolerantOf | PlacedOf | DueOf
Op = (
    Source
    | Changes
    | RowsOf
    | SessionsOf
    | TimeOf
    | Map
    | Join
    | Union
    | Aggregate
    | Distinct
    | TopK
    | SetOp
    | Exchange
    | Matches
    | Panes
)
AnyOp = Op | Partials | StreamOp | Output | Group
Ending = Output | Group  # what a flow is computed for


def inputs_of(op: AnyOp) -> tuple[AnyOp, ...]:
    match op:
        case BaseStream() | Source():
            return ()
        case Join(inputs, _, _, _):
            return inputs
        case Union(inputs):
            return tuple(i for _, i in inputs)
        case SetOp(_, _, left, right):
            return (left, right)
        case StreamOf() | Output():
            return (op.input, *op.relations)
        case _:
            return (op.input,)


def with_inputs(op: AnyOp, inputs: tuple[AnyOp, ...]) -> AnyOp:
    """The same operator over other inputs, in the order of `inputs_of`."""
    match op:
        case BaseStream() | Source():
            return op
        case Join():
            return replace(op, inputs=inputs)  # type: ignore[arg-type]
        case Union():
            signs = (sign for sign, _ in op.inputs)
            return replace(op, inputs=tuple(zip(signs, inputs, strict=True)))  # type: ignore[arg-type]
        case SetOp():
            return replace(op, left=inputs[0], right=inputs[1])  # type: ignore[arg-type]
        case StreamOf() | Output():
            return replace(op, input=inputs[0], relations=inputs[1:])  # type: ignore[arg-type]
        case _:
            return replace(op, input=inputs[0])  # type: ignore[arg-type]


def walk(op: AnyOp) -> Iterator[AnyOp]:
    """The operator and everything below it, inputs first."""
    for child in inputs_of(op):
        yield from walk(child)
    yield op


def base_names(op: AnyOp) -> frozenset[str]:
    """The base streams and relations below."""
    return frozenset(o.stream for o in walk(op) if isinstance(o, BaseStream | Source))


def is_everywhere(op: AnyOp) -> bool:
    """Whether every task can compute all of the operator's rows from the streams' new segments."""
    match op:
        case BaseStream() | Source():
            return True
        case Map() | Union() | DueOf():
            return all(is_everywhere(i) for i in inputs_of(op))
        case Exchange(_, keys):
            return keys is None
        case _:
            return False


def is_from_streams(op: AnyOp) -> bool:
    """Whether it only filters, projects and unites base streams: cheap, and the same everywhere."""
    match op:
        case BaseStream() | Source():
            return True
        case Map() | Union() | DueOf():
            return all(is_from_streams(i) for i in inputs_of(op))
        case _:
            return False


def level(op: AnyOp) -> int:
    """How many times rows change hands between tasks below this operator."""
    below = max((level(i) for i in inputs_of(op)), default=0)
    return below + 1 if moves(op) else below


def moves(op: AnyOp) -> bool:
    """Whether rows change hands here."""
    return isinstance(op, Exchange) and not op.stays and not is_everywhere(op.input)
