"""Comparisons and logic with three values, and choices among values."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np
import polars as pl

from thalweg.engine.shared.expressions.functions.comparing import (
    at_least,
    at_most,
    equal,
    greater,
    less,
    same,
    unequal,
)
from thalweg.engine.shared.expressions.functions.forms import Table, plain
from thalweg.engine.shared.state.hashing import hash_columns
from thalweg.plan.buckets import BUCKETS, SPACE

_NARROW = np.uint64((SPACE // BUCKETS).bit_length() - 1)  # bits of a hash within a bucket


def _in(x: pl.Expr, *others: pl.Expr) -> pl.Expr:
    return reduce(lambda a, b: a | b, [equal(x, other) for other in others])


def _extreme(pick: Callable[..., pl.Expr], args: tuple[pl.Expr, ...]) -> pl.Expr:
    known = reduce(lambda x, y: x & y, [a.is_not_null() for a in args])
    return pl.when(known).then(pick(*args))


def _buckets(column: pl.Series) -> pl.Series:
    """Ranges of the hash by which state is kept, so that a bucket means the same everywhere."""
    return pl.Series(column.name, (hash_columns([column]) >> _NARROW).astype(np.int64))


CONDITIONS: Table = {
    "=": plain(equal),
    "<=>": plain(same),
    "<>": plain(unequal),
    "<": plain(less),
    "<=": plain(at_most),
    ">": plain(greater),
    ">=": plain(at_least),
    "and": plain(lambda *a: reduce(lambda x, y: x & y, a)),
    "or": plain(lambda *a: reduce(lambda x, y: x | y, a)),
    "not": plain(lambda a: ~a),
    "is_null": plain(lambda a: a.is_null()),
    "is_not_null": plain(lambda a: a.is_not_null()),
    "in": plain(_in),
    "coalesce": plain(lambda *a: pl.coalesce(*a)),
    "bucket": plain(lambda a: a.map_batches(_buckets, return_dtype=pl.Int64)),
    "nullif": plain(lambda a, b: pl.when(equal(a, b).fill_null(False)).then(None).otherwise(a)),
    "greatest": plain(lambda *a: _extreme(pl.max_horizontal, a)),
    "least": plain(lambda *a: _extreme(pl.min_horizontal, a)),
}
