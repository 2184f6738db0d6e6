"""Cores, representatives and profiles as people read them: CQL with the names of the leaves.

EXPLAIN prints these texts, and golden tests compare them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from thalweg.plan.aggregates import AggCall
from thalweg.plan.catalog import Field, StreamDef
from thalweg.plan.expr import Expr, Lit, Value, conjuncts
from thalweg.plan.lengths import duration_text, length_text
from thalweg.plan.nodes import Schema
from thalweg.plan.text import aggregate_text, expr_text, window_text
from thalweg.plan.types import INTERVAL, SqlType
from thalweg.plan.windows import TimeWindow
from thalweg.sharing.core import Computed, Core, Grouped, Kept, NormalQuery, Residual
from thalweg.sharing.naming import (
    leaf_names,
    named_columns,
)
from thalweg.sharing.profile import Profile
from thalweg.sharing.ranges import Range
from thalweg.sharing.representative import Representative


def core_text(core: Core) -> str:
    schema = named_columns(core.streams)
    conditions = [
        *(expr_text(j, schema) for j in core.joins),
        *condition_texts(core.ranges, core.residuals, schema),
    ]
    sources = sources_text(core.streams, core.windows)
    lines = [_select_text(core.outputs, schema), f"FROM {sources}"]
    return "\n".join([*lines, *_clause("WHERE", conditions)])


def representative_text(rep: Representative) -> str:
    """What is computed once for a group."""
    return core_text(rep.to_core())


def profile_text(profile: Profile, rep: Representative) -> str:
    """What makes a member's rows of the representative's."""
    schema = named_columns(rep.streams)
    conditions = [
        *condition_texts(profile.ranges, profile.residuals, schema),
        *_difference_texts(profile, rep),
    ]
    lines = [_select_text(profile.outputs, schema)]
    if profile.windows != rep.windows:
        lines.append(f"VALID AS {sources_text(rep.streams, profile.windows)}")
    return "\n".join([*lines, *_clause("WHERE", conditions)])


def above_text(query: NormalQuery) -> str:
    """What a query does above its core, a line per step; empty if nothing."""
    named = named_columns(query.core.streams)
    schema: Schema = tuple(Field(expr_text(e, named), e.type) for e in query.core.outputs)
    lines = []
    for step in query.above:
        match step:
            case Grouped(keys, calls):
                lines.append(_group_text(keys, calls, schema))
                schema = _grouped_schema(keys, calls, schema)
            case Kept(predicate):
                parts = [expr_text(c, schema) for c in conjuncts(predicate)]
                lines.append("KEEP " + " AND ".join(parts))
            case Computed(exprs):
                lines.append("COMPUTE " + ", ".join(expr_text(e, schema) for e in exprs))
                schema = tuple(Field(expr_text(e, schema), e.type) for e in exprs)
            case _:
                lines.append("DISTINCT")
    if query.kind is not None:
        lines.append(query.kind.value)
    return "\n".join(lines)


def sources_text(streams: Sequence[StreamDef], windows: Sequence[TimeWindow]) -> str:
    names = leaf_names(tuple(streams))
    return ", ".join(
        f"{s.name} {window_text(w, s)}" + ("" if s.name == name else f" {name}")
        for s, w, name in zip(streams, windows, names, strict=True)
    )


def condition_texts(
    ranges: Iterable[tuple[Expr, Range]], residuals: Iterable[Residual], schema: Schema
) -> Iterator[str]:
    for expr, values in ranges:
        yield range_text(expr, values, schema)
    for residual in residuals:
        yield expr_text(residual.condition, schema)


def range_text(expr: Expr, values: Range, schema: Schema) -> str:
    what = expr_text(expr, schema)
    low, high = values.low, values.high
    if low is not None and high is not None:
        texts = [value_text(bound.value, expr.type) for bound in (low, high)]
        if values.is_point:
            return f"{what} = {texts[0]}"
        signs = ["<=" if bound.closed else "<" for bound in (low, high)]
        return f"{texts[0]} {signs[0]} {what} {signs[1]} {texts[1]}"
    if low is not None:
        return f"{what} {'>=' if low.closed else '>'} {value_text(low.value, expr.type)}"
    if high is not None:
        return f"{what} {'<=' if high.closed else '<'} {value_text(high.value, expr.type)}"
    return f"{what} IS NOT NULL"


def value_text(value: Value, type_: SqlType) -> str:
    if type_ == INTERVAL and isinstance(value, int):
        return duration_text(value)
    return expr_text(Lit(value, type_), ())


def _select_text(outputs: Sequence[Expr], schema: Schema) -> str:
    # COUNT(*) by itself needs rows, but none of their columns.
    return "SELECT " + (", ".join(expr_text(e, schema) for e in outputs) or "no columns")


def _clause(word: str, conditions: Sequence[str]) -> list[str]:
    """Conditions a line each, their ANDs below one another."""
    heads = [word, *[f"{'AND':>{len(word)}}"] * len(conditions)]
    return [f"{head} {c}" for head, c in zip(heads, conditions, strict=False)]


def _difference_texts(profile: Profile, rep: Representative) -> Iterator[str]:
    """Lemma 3.1 for pairs of leaves whose windows, which do not slide, the representative has
    loosened."""
    stamps = [
        f"{name}.{stream.timestamp}"
        for name, stream in zip(leaf_names(rep.streams), rep.streams, strict=True)
    ]
    for i, j in combinations(range(len(stamps)), 2):
        own, given = ((w[i].length, w[j].length) for w in (profile.windows, rep.windows))
        slides = profile.windows[i].slide > 1 or profile.windows[j].slide > 1
        if own == given or own == (None, None) or slides:
            continue
        stream = rep.streams[i]
        low = "" if own[0] is None else f"{length_text(-own[0], stream)} <= "
        high = "" if own[1] is None else f" <= {length_text(own[1], stream)}"
        yield f"{low}{stamps[i]} - {stamps[j]}{high}"


def _group_text(keys: tuple[Expr, ...], calls: tuple[AggCall, ...], schema: Schema) -> str:
    by = ", ".join(expr_text(k, schema) for k in keys)
    what = ", ".join(aggregate_text(c, schema) for c in calls)
    return "GROUP" + (f" BY {by}" if by else "") + (f": {what}" if what else "")


def _grouped_schema(keys: tuple[Expr, ...], calls: tuple[AggCall, ...], schema: Schema) -> Schema:
    return (
        *(Field(expr_text(k, schema), k.type) for k in keys),
        *(Field(aggregate_text(c, schema), c.type) for c in calls),
    )
