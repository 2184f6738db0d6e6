"""The syntax tree: what was written, and where. Nothing here knows what a name stands for.

Spans (offsets into the text) are left out of comparisons, so trees compare by meaning.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum

from thalweg.cql.errors import Span
from thalweg.plan.expr import Value
from thalweg.plan.types import SqlType

NOWHERE = (0, 0)  # only in trees that are written by hand, as tests do


# --- small parts --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Name:
    text: str
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Duration:
    """An amount of time; without a unit it counts in the stream's RESOLUTION."""

    amount: Decimal
    unit: str | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    unit_span: Span = field(default=NOWHERE, compare=False, repr=False)


# --- expressions --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ColumnRef:
    """`name` or `qualifier.name`. An unqualified double-quoted name may turn out a string."""

    name: str
    qualifier: str | None = None
    quoted: bool = False
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Literal:
    value: Value
    type: SqlType
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class IntervalLiteral:
    """INTERVAL 'n' UNIT; months and years have no fixed length and are kept apart."""

    microseconds: int
    months: int = 0
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Negation:
    """Unary minus."""

    arg: Expr
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """+ - * / % and ||."""

    operator: str
    left: Expr
    right: Expr
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Comparison:
    """`a op b`; `a = b = c` has two steps and means both equalities."""

    first: Expr
    steps: tuple[tuple[str, Expr], ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Logical:
    """AND or OR (in lower case) of two or more."""

    operator: str
    args: tuple[Expr, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Not:
    arg: Expr
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class IsNull:
    arg: Expr
    negated: bool = False
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Like:
    arg: Expr
    pattern: Expr
    negated: bool = False
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Between:
    arg: Expr
    low: Expr
    high: Expr
    negated: bool = False
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class InList:
    arg: Expr
    items: tuple[Expr, ...]
    negated: bool = False
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class InQuery:
    """`x IN (SELECT …)`; several args for `(x, y) IN (SELECT …)`."""

    args: tuple[Expr, ...]
    query: Query
    negated: bool = False
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Exists:
    query: Query
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ScalarQuery:
    """A sub-query in parentheses, used as a value."""

    query: Query
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class CaseWhen:
    """Both forms of CASE; the operand is None in the searched form."""

    operand: Expr | None
    branches: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr | None
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class CastTo:
    arg: Expr
    type: SqlType
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A scalar function or an aggregate; the name in lower case. COUNT(*) has `star`.

    `only` is the condition of an aggregate's FILTER (WHERE …).
    """

    name: str
    args: tuple[Expr, ...]
    distinct: bool = False
    star: bool = False
    only: Expr | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    name_span: Span = field(default=NOWHERE, compare=False, repr=False)


Expr = (
    ColumnRef
    | Literal
    | IntervalLiteral
    | Negation
    | Arithmetic
    | Comparison
    | Logical
    | Not
    | IsNull
    | Like
    | Between
    | InList
    | InQuery
    | Exists
    | ScalarQuery
    | CaseWhen
    | CastTo
    | FunctionCall
)


# --- queries ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RangeWindow:
    """`[Range n unit]`, `[Now]` (length 0) and `[Unbounded]` (no length)."""

    length: Duration | None
    slide: Duration | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class RowsWindow:
    """`[Rows n]` and `[Partition By a, b Rows n]`; `slide` counts rows."""

    count: Duration
    slide: Duration | None = None
    partition_by: tuple[ColumnRef, ...] = ()
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class HopWindow:
    """`[Hop n unit EVERY n unit]`; `[Tumble n unit]` has no `every` of its own."""

    length: Duration
    every: Duration | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class SessionWindow:
    """`[Session n unit Partition By a, b]`."""

    gap: Duration
    partition_by: tuple[ColumnRef, ...] = ()
    span: Span = field(default=NOWHERE, compare=False, repr=False)


Window = RangeWindow | RowsWindow | HopWindow | SessionWindow


@dataclass(frozen=True, slots=True)
class Tolerance:
    """`TOLERANCE price 0.05`, `… price 1 PERCENT`, `… 5 UPDATES` or `… 2 SECONDS`, each maybe
    `PER symbol`. A number that has no column has a unit, or counts instants."""

    column: ColumnRef | None
    amount: Duration
    is_percent: bool = False
    per: tuple[ColumnRef, ...] = ()
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TableRef:
    name: Name
    window: Window | None = None
    alias: Name | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    with_position: bool = False
    tolerance: Tolerance | None = None


@dataclass(frozen=True, slots=True)
class SubqueryRef:
    query: Query
    window: Window | None = None
    alias: Name | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    tolerance: Tolerance | None = None


@dataclass(frozen=True, slots=True)
class JoinRef:
    """`left JOIN right ON condition`; CROSS JOIN has no condition."""

    left: FromItem
    right: FromItem
    condition: Expr | None
    is_left: bool = False
    span: Span = field(default=NOWHERE, compare=False, repr=False)


FromItem = TableRef | SubqueryRef | JoinRef


@dataclass(frozen=True, slots=True)
class Star:
    """`*` or `a.*`."""

    qualifier: str | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class SelectItem:
    expr: Expr
    alias: Name | None = None

    @property
    def span(self) -> Span:
        return self.expr.span


@dataclass(frozen=True, slots=True)
class Select:
    items: tuple[SelectItem | Star, ...]
    sources: tuple[FromItem, ...]
    where: Expr | None = None
    group_by: tuple[Expr, ...] = ()
    having: Expr | None = None
    distinct: bool = False
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class SetQuery:
    """`kind` is UNION, EXCEPT or INTERSECT."""

    kind: str
    all: bool
    left: Query
    right: Query
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class OrderItem:
    """One expression of ORDER BY; where NULLs go is None unless it was said."""

    expr: Expr
    descending: bool = False
    nulls_last: bool | None = None


@dataclass(frozen=True, slots=True)
class TopQuery:
    """`query ORDER BY … LIMIT n`."""

    query: Query
    order: tuple[OrderItem, ...]
    limit: int
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    order_span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class StreamQuery:
    """ISTREAM, DSTREAM or RSTREAM of a query."""

    kind: str
    query: Query
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Definition:
    """One `name [(columns)] AS (query)` of a WITH."""

    name: Name
    columns: tuple[Name, ...]
    query: Query


@dataclass(frozen=True, slots=True)
class WithQuery:
    definitions: tuple[Definition, ...]
    body: Query
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class PlacedQuery:
    """PLACED 'plan' OVER (names) [AS query]: the plan is given, as nodes of a network do it."""

    plan: str
    over: tuple[Name, ...]
    query: Query | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)


Query = Select | SetQuery | TopQuery | StreamQuery | WithQuery | PlacedQuery


# --- statements ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ColumnDef:
    name: Name
    type: SqlType
    wide: Span | None = None  # where it says WIDE


class Mode(StrEnum):
    """What a CREATE does with a name that is there already."""

    NEW = "CREATE"  # it is an error
    IF_NOT_EXISTS = "CREATE … IF NOT EXISTS"  # nothing
    OR_REPLACE = "CREATE OR REPLACE"
    ALTER = "ALTER"  # as OR REPLACE, and it has to be there


@dataclass(frozen=True, slots=True)
class CreateStream:
    """CREATE STREAM, or CREATE RELATION where `is_relation`."""

    name: Name
    columns: tuple[ColumnDef, ...]
    timestamp: Name
    timestamp_type: SqlType | None = None
    is_relation: bool = False
    resolution: Duration | None = None
    lateness: Duration | None = None
    idle: Duration | None = None
    source: str | None = None
    options: tuple[tuple[Name, str], ...] = ()
    retain: Duration | None = None
    mode: Mode = Mode.NEW
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class CreateTable:
    """CREATE TABLE; `key` is of PRIMARY KEY."""

    name: Name
    columns: tuple[ColumnDef, ...]
    key: tuple[Name, ...] = ()
    resolution: Duration | None = None
    source: str | None = None
    refresh: Duration | None = None
    options: tuple[tuple[Name, str], ...] = ()
    mode: Mode = Mode.NEW
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Insert:
    """INSERT INTO name (columns) VALUES (…), …; without columns, all of them."""

    name: Name
    columns: tuple[Name, ...]
    rows: tuple[tuple[Expr, ...], ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Delete:
    """DELETE FROM name WHERE …"""

    name: Name
    where: Expr | None
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class CreateView:
    name: Name
    columns: tuple[Name, ...]
    query: Query
    mode: Mode = Mode.NEW
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class CreateQuery:
    """CREATE QUERY, ALTER QUERY, or a bare query, which has no name yet."""

    name: Name | None
    query: Query
    from_now: bool = False
    mode: Mode = Mode.NEW
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class CreateSink:
    """CREATE SINK name FROM query INTO 'target'."""

    name: Name
    query: Name
    target: str
    options: tuple[tuple[Name, str], ...] = ()
    mode: Mode = Mode.NEW
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class AddColumn:
    """ALTER STREAM (or RELATION) name ADD COLUMN column."""

    kind: str
    name: Name
    column: ColumnDef
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class SpreadQuery:
    """ALTER QUERY name SPREAD OVER nodes."""

    name: Name
    nodes: tuple[Name, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Drop:
    """`kind` is STREAM, RELATION, TABLE, VIEW, QUERY or SINK."""

    kind: str
    name: Name
    if_exists: bool = False
    span: Span = field(default=NOWHERE, compare=False, repr=False)


Creating = CreateStream | CreateTable | CreateView | CreateQuery | CreateSink
Writing = Insert | Delete  # change rows, not definitions
Statement = Creating | AddColumn | SpreadQuery | Drop | Writing


def children(expr: Expr) -> tuple[Expr, ...]:
    """The expressions right inside one, sub-queries left out."""
    match expr:
        case Negation(arg) | Not(arg) | IsNull(arg) | CastTo(arg):
            return (arg,)
        case Arithmetic(_, left, right) | Like(left, right):
            return left, right
        case Comparison(first, steps):
            return (first, *(operand for _, operand in steps))
        case Logical(_, args) | InQuery(args):
            return args
        case FunctionCall(_, args, _, _, only):
            return args if only is None else (*args, only)
        case Between(arg, low, high):
            return arg, low, high
        case InList(arg, items):
            return (arg, *items)
        case CaseWhen(operand, branches, otherwise):
            optional = tuple(e for e in (operand, otherwise) if e is not None)
            return optional + tuple(e for branch in branches for e in branch)
        case _:
            return ()
