"""Constants that take their type from what they are compared with."""

from __future__ import annotations

from collections.abc import Sequence

from thalweg.cql.errors import Mistake, Span
from thalweg.cql.parser.literals import parse_date, parse_timestamp
from thalweg.plan.expr import Expr, Lit
from thalweg.plan.types import DATE, TIMESTAMP, VARCHAR


def align(args: Sequence[Expr], spans: Sequence[Span]) -> list[Expr]:
    """String constants beside a DATE or TIMESTAMP become one: `day > '2024-02-29'`."""
    if not any(a.type.is_temporal for a in args):
        return list(args)
    return [_as_temporal(a, span) for a, span in zip(args, spans, strict=True)]


def _as_temporal(arg: Expr, span: Span) -> Expr:
    if not (isinstance(arg, Lit) and arg.type == VARCHAR):
        return arg
    text = str(arg.value)
    day = parse_date(text)
    if day is not None:
        return Lit(day, DATE)
    moment = parse_timestamp(text)
    if moment is None:
        hint = "write it as '2024-02-29' or '2024-02-29 13:45:00'"
        raise Mistake(f"'{text}' is not a date or timestamp", span, hint)
    return Lit(moment, TIMESTAMP)
