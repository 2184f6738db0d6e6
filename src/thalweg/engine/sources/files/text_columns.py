"""Columns of text brought to their types at once, where all of a column's texts are plain; all
other columns stay text, which the landing judges."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from thalweg.engine.shared.ingest.plain_texts import plain_values
from thalweg.plan.types import SqlType


def typed_columns(frame: pl.DataFrame, types: Mapping[str, SqlType]) -> pl.DataFrame:
    """The frame with plain text columns in the types that are wanted."""
    return frame.with_columns(
        _typed(frame[name], sql) for name, sql in types.items() if frame.schema[name] == pl.String
    )


def _typed(texts: pl.Series, sql: SqlType) -> pl.Series:
    values = plain_values(texts, sql)
    if values is None or values.null_count() != texts.null_count():
        return texts
    return values.alias(texts.name)
