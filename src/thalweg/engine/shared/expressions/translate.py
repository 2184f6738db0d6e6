"""Plan expressions as Polars expressions, with the value rules of `thalweg.plan.functions`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache

import polars as pl

from thalweg.engine.shared.expressions.casts import cast
from thalweg.engine.shared.expressions.functions import IMPLEMENTATIONS
from thalweg.engine.shared.frames import dtype, name
from thalweg.plan.expr import Call, Case, Cast, Col, Expr, Lit, columns_of
from thalweg.plan.types import BOOLEAN, SqlType


@lru_cache(maxsize=65_536)
def to_polars(expr: Expr) -> pl.Expr:
    """An expression over columns `c0`, `c1`, … of a frame."""
    compiled = _compiled(expr)
    if isinstance(expr, Col | Lit) or columns_of(expr):
        return compiled
    # Without columns it is a constant: computed once, and then as long as any frame.
    return literal(pl.select(compiled).item(), expr.type)


def _compiled(expr: Expr) -> pl.Expr:
    match expr:
        case Col(index, _, _):
            return pl.col(name(index))
        case Lit(value, type_):
            return literal(value, type_)
        case Cast(arg, target):
            return _applied(lambda x: cast(x, arg.type, target), (arg,), target)
        case Case(branches, otherwise, _):
            result = to_polars(otherwise)
            for condition, value in reversed(branches):
                result = pl.when(to_polars(condition)).then(to_polars(value)).otherwise(result)
            return result
        case Call(function, args, type_):
            return _applied(lambda *x: IMPLEMENTATIONS[function](expr, list(x)), args, type_)


def _applied(function: Callable[..., pl.Expr], args: tuple[Expr, ...], type_: SqlType) -> pl.Expr:
    """A function of its arguments, each of which is computed once.

    Polars keeps expressions as trees: an argument that a function looks at twice would be there
    twice, with all that is below it, and a chain of a dozen divisions would fill the memory.
    """
    if all(isinstance(a, Col | Lit) for a in args):
        return function(*(to_polars(a) for a in args))
    computed = {f"_{i}": a for i, a in enumerate(args) if columns_of(a)}
    places = [pl.col(p) if (p := f"_{i}") in computed else to_polars(a) for i, a in enumerate(args)]
    body = function(*places)
    looked_at = Counter(body.meta.root_names())
    if all(isinstance(a, Col) or looked_at[p] == 1 for p, a in computed.items()):
        return function(*(to_polars(a) for a in args))

    def compute(columns: Sequence[pl.Series]) -> pl.Series:
        frame = pl.DataFrame(dict(zip(computed, columns, strict=True)))
        return frame.select(body.cast(dtype(type_)).alias("_")).to_series()

    inputs = [to_polars(a) for a in computed.values()]
    return pl.map_batches(inputs, compute, return_dtype=dtype(type_))


def literal(value: object, type_: SqlType) -> pl.Expr:
    return pl.lit(value, dtype=dtype(type_))


def holds(frame: pl.DataFrame, predicate: Expr) -> pl.Series:
    """For which rows it is true; a constant is, or is not, for all of them."""
    return frame.with_columns(is_true(predicate).fill_null(False).alias("_holds"))["_holds"]


def is_true(predicate: Expr) -> pl.Expr:
    """A predicate as a filter: NULL counts as false."""
    compiled = to_polars(predicate)
    return compiled if predicate.type == BOOLEAN else pl.lit(False)
