"""Scalar function calls: synonyms, and functions that are spelt with others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from thalweg.cql.bind.literals import align
from thalweg.cql.errors import Mistake, Span, did_you_mean
from thalweg.cql.syntax import FunctionCall
from thalweg.plan import functions
from thalweg.plan.aggregates import AGGREGATES
from thalweg.plan.expr import Expr, Lit
from thalweg.plan.functions import EXTRACT_PARTS, INTERVAL_PARTS, TRUNC_PARTS, TypeMismatch
from thalweg.plan.types import BOOLEAN, INTERVAL, NULL, VARCHAR

_SYNONYMS = {
    "ceiling": "ceil",
    "char_length": "length",
    "character_length": "length",
    "ifnull": "coalesce",
    "len": "length",
    "mod": "%",
    "nvl": "coalesce",
    "pow": "power",
    "substr": "substring",
}
_PARTS_AS_FUNCTIONS = ("year", "month", "day", "hour", "minute", "second")
_ALIGNED = {"=", "<>", "<", "<=", ">", ">=", "in", "coalesce", "nullif", "greatest", "least"}


def typed_call(name: str, args: Sequence[Expr], spans: Sequence[Span], span: Span) -> Expr:
    """`plan.functions.call`, with a place for what it refuses."""
    try:
        return functions.call(name, *(align(args, spans) if name in _ALIGNED else args))
    except TypeMismatch as mismatch:
        raise Mistake(str(mismatch), span) from None


def bind_call(call: FunctionCall, args: Sequence[Expr]) -> Expr:
    """A scalar call by the name that the user wrote."""
    name = _SYNONYMS.get(call.name, call.name)
    spans = [a.span for a in call.args]
    if call.star or call.distinct:
        word = "*" if call.star else "DISTINCT"
        raise Mistake(f"{call.name.upper()} does not take {word}", call.span)
    if name in _BUILT:
        low, build = _BUILT[name]
        if len(args) < low:
            message = f"{name.upper()} takes {low} or more arguments, not {len(args)}"
            raise Mistake(message, call.span)
        try:
            return build(args)
        except TypeMismatch as mismatch:
            raise Mistake(str(mismatch), call.span) from None
    if name in _PARTS_AS_FUNCTIONS:
        return typed_call("extract", [Lit(name, VARCHAR), *args], spans, call.span)
    if name not in functions.FUNCTIONS or not (name.isidentifier() or call.name == "mod"):
        raise _unknown(call)
    if name in ("extract", "date_trunc") and len(args) == 2:
        _check_part(name, args, spans[0])
    return typed_call(name, args, spans, call.span)


# What other systems write windows as.
_WINDOWS_ELSEWHERE = (
    *("tumble", "hop", "session", "cumulate", "window", "tumbling_window", "hopping_window"),
    *("tumble_start", "tumble_end", "hop_start", "hop_end", "session_window", "time_window"),
)


def _unknown(call: FunctionCall) -> Mistake:
    known = [n for n in functions.FUNCTIONS if n.isidentifier() and "_null" not in n]
    known += [*_SYNONYMS, *_BUILT, *_PARTS_AS_FUNCTIONS, *AGGREGATES]
    hint = did_you_mean(call.name, sorted(known))
    if call.name.lower() in _WINDOWS_ELSEWHERE:
        hint = "a window stands behind the stream in FROM, such as Reading [Range 1 MINUTE]"
    return Mistake(f"there is no function {call.name.upper()}", call.name_span, hint)


def _check_part(name: str, args: Sequence[Expr], span: Span) -> None:
    part = args[0]
    if not isinstance(part, Lit) or not isinstance(part.value, str):
        raise Mistake(f"{name.upper()} takes its part as a constant", span)
    parts: tuple[str, ...]
    if name == "date_trunc":
        parts = TRUNC_PARTS
    else:
        parts = INTERVAL_PARTS if args[1].type == INTERVAL else EXTRACT_PARTS
    if part.value.lower() not in parts:
        hint = did_you_mean(part.value, parts) or f"one of {', '.join(parts)}"
        raise Mistake(f'{name.upper()} has no part "{part.value}"', span, hint)


def _concat(args: Sequence[Expr]) -> Expr:
    return reduce(lambda left, right: functions.call("||", left, right), args)


def _if(args: Sequence[Expr]) -> Expr:
    if len(args) != 3:
        raise TypeMismatch(f"IF takes 3 arguments, not {len(args)}")
    if args[0].type not in (BOOLEAN, NULL):
        raise TypeMismatch(f"IF takes a condition first, not {args[0].type}")
    return functions.case([(args[0], args[1])], args[2])


def _strpos(args: Sequence[Expr]) -> Expr:
    return functions.call("position", *reversed(args))


# Functions that are spelt with others: the least number of arguments, and how.
_BUILT: dict[str, tuple[int, Callable[[Sequence[Expr]], Expr]]] = {
    "concat": (2, _concat),
    "if": (3, _if),
    "strpos": (2, _strpos),
}
