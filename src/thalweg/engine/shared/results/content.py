"""What a query's relation holds: the bag that its changes add up to, and how it is kept."""

from __future__ import annotations

import io
from collections.abc import Sequence

import polars as pl

from thalweg.engine.shared.frames import OP, TS, W, net
from thalweg.engine.shared.results.emission import NO_ROWS, Emission, EndMark
from thalweg.engine.shared.state.versions import Ended


def weighed(changes: pl.DataFrame) -> pl.DataFrame:
    """What a tick has said, with `_w` in place of instants and ops."""
    return changes.drop(TS, OP).with_columns(changes[OP].cast(pl.Int64).alias(W))


def summed(parts: Sequence[pl.DataFrame]) -> pl.DataFrame | None:
    """The bag that weighed changes add up to; None if nobody has said anything."""
    if not parts:
        return None
    columns = [c for c in parts[0].columns if c != W]
    bag = net(pl.concat([p.select(*columns, W) for p in parts]), columns)
    assert (bag[W] > 0).all(), "a relation holds no row less than no times"
    return bag.select(*columns, W)


def bag_of(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows with their multiplicities in `_w`."""
    return rows.group_by(rows.columns, maintain_order=True).agg(pl.len().cast(pl.Int64).alias(W))


def packed(content: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    content.write_ipc(buffer, compression="zstd")
    return buffer.getvalue()


def unpacked(content: bytes) -> pl.DataFrame:
    return pl.read_ipc(io.BytesIO(content))


def closing(query: str, ended: Ended) -> Emission:
    """The last that a version says: its rows taken back, if it closes, and the end mark."""
    rows = NO_ROWS
    if ended.closes and ended.content is not None:
        bag = unpacked(ended.content)
        columns = [c for c in bag.columns if c != W]
        rows = (
            bag.select(
                pl.lit(ended.instant, dtype=pl.Int64).alias(TS),
                pl.lit(-1, dtype=pl.Int8).alias(OP),
                *columns,
                pl.int_ranges(W).alias(W),
            )
            .explode(W)
            .drop(W)
            .sort(TS, OP, *columns, nulls_last=False)
        )
    mark = EndMark(ended.version, ended.instant)
    upto = ended.instant + 1 if rows.height else ended.instant
    return Emission(query, ended.run, ended.columns, ended.instant, upto, rows, mark)
