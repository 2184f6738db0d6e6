"""Frames one after the other in a file, for rows that wait to be written in another form."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pyarrow as pa


def to_bytes(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_ipc_stream(buffer, compat_level=pl.CompatLevel.oldest())
    return buffer.getvalue()


def read_frames(path: Path, length: int) -> Iterator[pl.DataFrame]:
    """Those in the file's first bytes."""
    source = pa.BufferReader(path.read_bytes()[:length])
    while source.tell() < length:
        with pa.ipc.open_stream(source) as stream:
            yield pl.DataFrame(stream.read_all())
