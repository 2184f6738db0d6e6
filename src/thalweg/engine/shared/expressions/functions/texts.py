"""Text, in code points."""

from __future__ import annotations

import polars as pl

from thalweg.engine.shared.expressions import rowwise
from thalweg.engine.shared.expressions.functions.forms import Table, plain, typed
from thalweg.engine.shared.expressions.rowwise import by_row
from thalweg.plan.expr import Call, Lit
from thalweg.plan.types import SqlType

_SHORT = 1_000  # a longer pattern may be too large for a regular expression


def _like(expr: Call, args: list[pl.Expr], _: list[SqlType]) -> pl.Expr:
    pattern = expr.args[1]
    if isinstance(pattern, Lit) and isinstance(pattern.value, str) and len(pattern.value) <= _SHORT:
        return args[0].str.contains(rowwise.like_regex(pattern.value))
    return by_row(rowwise.like, pl.Boolean(), *args)


def _substring(*args: pl.Expr) -> pl.Expr:
    """Characters from `start` (counted from 1) on; a start before the text shortens the length."""
    text, start = args[0], args[1].cast(pl.Int128)
    first = pl.when(start < 1).then(_ONE).otherwise(start)
    if len(args) == 2:
        return text.str.slice(_place(first) - 1)
    # In 128 bits: where the end lies beyond 64, the text ends before it.
    length = args[2].cast(pl.Int128)
    end = start + length
    end = pl.when(end < first).then(first).otherwise(end)
    sliced = text.str.slice(_place(first) - 1, _place(end) - _place(first))
    return pl.when(length >= 0).then(sliced)


_ONE = pl.lit(1, dtype=pl.Int128)
_FURTHEST = 1 << 40  # no text is that long


def _place(x: pl.Expr) -> pl.Expr:
    return pl.when(x > _FURTHEST).then(_FURTHEST).otherwise(x).cast(pl.Int64)


def _has_any(expr: Call, args: list[pl.Expr], _: list[SqlType]) -> pl.Expr:
    words = expr.args[1]
    if not isinstance(words, Lit) or not isinstance(words.value, str):
        return by_row(rowwise.has_any, pl.Boolean(), *args)
    between = [f",{word}," for word in sorted(rowwise.words_of(words.value))]
    if not between:
        return pl.when(args[0].is_not_null()).then(False)
    return pl.concat_str(pl.lit(","), args[0], pl.lit(",")).str.contains_any(between)


def _replace(text: str, old: str, new: str) -> str:
    return text.replace(old, new) if old else text


TEXTS: Table = {
    "like": typed(_like),
    "upper": plain(lambda a: by_row(str.upper, pl.String(), a)),
    "lower": plain(lambda a: by_row(str.lower, pl.String(), a)),
    "length": plain(lambda a: a.str.len_chars().cast(pl.Int64)),
    "trim": plain(lambda a: a.str.strip_chars(" ")),
    "ltrim": plain(lambda a: a.str.strip_chars_start(" ")),
    "rtrim": plain(lambda a: a.str.strip_chars_end(" ")),
    "||": plain(lambda a, b: pl.concat_str([a, b])),
    "starts_with": plain(lambda a, b: a.str.starts_with(b)),
    "has_any": typed(_has_any),
    "substring": plain(_substring),
    "replace": plain(lambda *a: by_row(_replace, pl.String(), *a)),
    "position": plain(lambda *a: by_row(lambda p, t: t.find(p) + 1, pl.Int64(), *a)),
}
