"""Results as plain tables: `_ts`, `_op` and the query's own columns."""

from __future__ import annotations

import numpy as np
import polars as pl

from thalweg.engine.shared.frames import OP, TS, names
from thalweg.engine.shared.results.emission import Emission

_SIGNS = pl.Series(OP, ["+", "-"])


def flat(emission: Emission) -> pl.DataFrame:
    """The underscore keeps the two apart from a query's own `ts` or `op`."""
    rows = emission.rows[[TS, OP, *names(len(emission.columns))]]
    rows.replace_column(1, _SIGNS[(rows[OP].to_numpy() < 0).astype(np.uint32)])
    rows.columns = flat_names(emission.columns)
    return rows


def flat_names(columns: tuple[str, ...], own: tuple[str, ...] = (TS, OP)) -> list[str]:
    """A column that is itself called like a sink's own gets one more underscore."""
    taken = list(own)
    for column in columns:
        while column in taken:
            column = "_" + column
        taken.append(column)
    return taken
