"""What was said about a range of instants: how rows pass between sites, engines and nodes."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl


@dataclass(frozen=True, slots=True)
class Piece:
    """All rows of a publication in the instants [low, upto): `_ts`, `_op`, and its columns."""

    low: int
    upto: int
    rows: pl.DataFrame
