"""The two forms in which a function is implemented: by its columns alone, or by types as well."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from thalweg.plan.expr import Call
from thalweg.plan.types import SqlType

Typed = Callable[
    [Call, list[pl.Expr], list[SqlType]], pl.Expr
]  # the call, its columns, their types
Implementation = Callable[[Call, list[pl.Expr]], pl.Expr]


def plain(function: Callable[..., pl.Expr]) -> Implementation:
    return lambda _, args: function(*args)


def typed(function: Typed) -> Implementation:
    return lambda call, args: function(call, args, [a.type for a in call.args])


Table = dict[str, Implementation]
