"""Plans and expressions as text: what EXPLAIN prints and what golden tests compare."""

from __future__ import annotations

from datetime import date, datetime

from thalweg.plan.aggregates import AggCall
from thalweg.plan.catalog import StreamDef
from thalweg.plan.coherency.tolerance import Age, ChangesSince, Deviation, Tolerance
from thalweg.plan.expr import Call, Case, Cast, Col, Expr, Lit
from thalweg.plan.lengths import length_text
from thalweg.plan.nodes import (
    Aggregate,
    Distinct,
    DueRows,
    Filter,
    Join,
    LeftJoin,
    Mark,
    Node,
    Project,
    Scan,
    Schema,
    SetOp,
    SortKey,
    Tolerant,
    TopK,
    ToStream,
    Window,
    base_streams,
    inputs_of,
)
from thalweg.plan.types import BOOLEAN, INTERVAL
from thalweg.plan.windows import HopWindow, RowsWindow, SessionWindow, TimeWindow, WindowSpec

INFIX = {"=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "||", "like", "and", "or"}


def expr_text(expr: Expr, schema: Schema) -> str:
    """An expression with column names taken from the schema, `#i` where a name is ambiguous."""
    match expr:
        case Col(index, _, _):
            return column_text(index, schema)
        case Lit():
            return _literal_text(expr)
        case Cast(arg, target):
            return f"CAST({expr_text(arg, schema)} AS {target})"
        case Case(branches, otherwise, _):
            whens = " ".join(
                f"WHEN {expr_text(c, schema)} THEN {expr_text(v, schema)}" for c, v in branches
            )
            return f"CASE {whens} ELSE {expr_text(otherwise, schema)} END"
        case Call(name, args, _):
            return _call_text(name, [_operand_text(a, schema) for a in args])


def column_text(index: int, schema: Schema) -> str:
    name = schema[index].name
    same = sum(f.name.lower() == name.lower() for f in schema)
    return name if same == 1 else f"{name}#{index}"


def _operand_text(arg: Expr, schema: Schema) -> str:
    text = expr_text(arg, schema)
    return f"({text})" if isinstance(arg, Call) and arg.function in INFIX else text


def _call_text(name: str, args: list[str]) -> str:
    if name in INFIX and len(args) > 1:
        return f" {name.upper()} ".join(args)
    if name == "is_null":
        return f"{args[0]} IS NULL"
    if name == "is_not_null":
        return f"{args[0]} IS NOT NULL"
    if name == "in":
        return f"{args[0]} IN ({', '.join(args[1:])})"
    return f"{name.upper()}({', '.join(args)})"


def _literal_text(lit: Lit) -> str:
    if lit.value is None:
        return "NULL"
    if lit.type == BOOLEAN:
        return str(lit.value).upper()
    if lit.type == INTERVAL:
        return f"INTERVAL '{lit.value}' MICROSECOND"
    if isinstance(lit.value, str):
        return "'" + lit.value.replace("'", "''") + "'"
    if isinstance(lit.value, (date, datetime)):
        return f"{lit.type} '{lit.value}'"
    return str(lit.value)


def aggregate_text(agg: AggCall, schema: Schema) -> str:
    if agg.arg is None:
        return "COUNT(*)"
    distinct = "DISTINCT " if agg.distinct else ""
    return f"{agg.function.upper()}({distinct}{expr_text(agg.arg, schema)})"


def top_text(
    keys: tuple[SortKey, ...], count: int, partition_by: tuple[Expr, ...], schema: Schema
) -> str:
    order = ", ".join(
        expr_text(k.expr, schema)
        + (" DESC" if k.descending else "")
        + (" NULLS LAST" if k.nulls_last and not k.descending else "")
        + (" NULLS FIRST" if k.descending and not k.nulls_last else "")
        for k in keys
    )
    each = ", ".join(expr_text(e, schema) for e in partition_by)
    return f"Top {count} by {order}" + (f" for each {each}" if each else "")


def tolerance_text(
    tolerance: Tolerance, column: int | None, per: tuple[int, ...], schema: Schema
) -> str:
    """As it is written, but for the time, which is in instants."""
    match tolerance:
        case Age(instants):
            allowed = str(instants)
        case ChangesSince(updates):
            allowed = f"{updates} UPDATES"
        case Deviation(amount):
            allowed = f"{amount:f}"
        case _:
            allowed = f"{(tolerance.share * 100).normalize():f} PERCENT"
    what = "" if column is None else f"{column_text(column, schema)} "
    keys = ", ".join(column_text(k, schema) for k in per)
    return f"Tolerance {what}{allowed}" + (f" per {keys}" if keys else "")


def window_text(spec: WindowSpec, clock: StreamDef | None, schema: Schema = ()) -> str:
    """As people write it; `clock` is a stream whose instants it counts."""

    def length(instants: int) -> str:
        return length_text(instants, clock)

    match spec:
        case RowsWindow(count, slide, keys):
            by = f"Partition By {_columns(keys, schema)} " if keys else ""
            return f"[{by}Rows {count}{f' Slide {slide}' if slide != 1 else ''}]"
        case SessionWindow(gap, keys, _):
            by = f" Partition By {_columns(keys, schema)}" if keys else ""
            return f"[Session {length(gap)}{by}]"
        case HopWindow(reach, slide, _):
            every = f" Every {length(slide)}" if slide != reach else ""
            return f"[{'Hop' if every else 'Tumble'} {length(reach)}{every}]"
        case TimeWindow(reach, slide):
            what = "Unbounded" if reach is None else f"Range {length(reach)}" if reach else "Now"
            return f"[{what}{f' Slide {length(slide)}' if slide != 1 else ''}]"


def _columns(keys: tuple[int, ...], schema: Schema) -> str:
    return ", ".join(column_text(k, schema) for k in keys)


def node_text(node: Node) -> str:
    """One line for the node itself."""
    match node:
        case Scan(stream):
            kind = "Table" if stream.is_table else "Relation" if stream.is_relation else "Stream"
            return f"{kind} {stream.name}"
        case Tolerant(source, tolerance, column, per):
            return tolerance_text(tolerance, column, per, source.schema)
        case DueRows(source):
            return f"Rows where {expr_text(node.is_due, source.schema)}"
        case Window(source, spec):
            bounds = " with its bounds" if spec.bounds is not None else ""
            clock = next(iter(base_streams(source)), None)
            return f"Window {window_text(spec, clock, source.schema)}{bounds}"
        case Filter(source, predicate):
            return f"Filter {expr_text(predicate, source.schema)}"
        case Project(source, exprs, names):
            return "Project " + ", ".join(
                _named(e, n, source.schema) for e, n in zip(exprs, names, strict=True)
            )
        case Join(_, condition):
            return f"Join on {expr_text(condition, node.schema)}"
        case LeftJoin(_, _, condition):
            return f"Left join on {expr_text(condition, node.schema)}"
        case Mark(source, subquery, correlation, match_):
            both = source.schema + subquery.schema
            kind = "exists" if match_ is None else f"in: {expr_text(match_, both)}"
            return f"Mark {kind} where {expr_text(correlation, both)}"
        case Aggregate(source, keys, aggregates, _):
            by = ", ".join(expr_text(k, source.schema) for k in keys)
            what = ", ".join(aggregate_text(a, source.schema) for a in aggregates)
            return "Aggregate" + (f" {what}" if what else "") + (f" by {by}" if by else "")
        case Distinct():
            return "Distinct"
        case TopK(source, keys, count, partition_by):
            return top_text(keys, count, partition_by, source.schema)
        case SetOp(kind, all_, _, _):
            return kind.value + (" ALL" if all_ else "")
        case ToStream(kind, _):
            return kind.value


def _named(expr: Expr, name: str, schema: Schema) -> str:
    text = expr_text(expr, schema)
    return text if text == name else f"{text} AS {name}"


def plan_text(node: Node, indent: int = 0) -> str:
    """The whole plan, a line per node, inputs indented below."""
    lines = ["  " * indent + node_text(node)]
    lines += [plan_text(child, indent + 1) for child in inputs_of(node)]
    return "\n".join(lines)
