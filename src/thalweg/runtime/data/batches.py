"""What leaves a node over Arrow Flight, as record batches.

pyarrow loads pandas where it is asked to make an array of Python values, or an empty table: half
a second of work, and it would be done when a fragment has just gone over to a node that has never
published anything, while its reader waits for the first row. So neither is asked for here.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa

PIECES = pa.schema([("piece", pa.int64()), ("content", pa.large_binary())])


def batch_of(rows: pl.DataFrame, schema: pa.Schema) -> pa.RecordBatch:
    some = rows if rows.height else rows.clear(1)
    # Texts are copied: as views they would take all of the buffers along into which they point.
    table = some.to_arrow().combine_chunks()
    if table.schema != schema:
        table = table.cast(schema)
    return table.to_batches()[0].slice(0, rows.height)


def piece_batch(place: int, part: pa.Buffer) -> pa.RecordBatch:
    """Bytes as one value, without copying them."""
    number = pa.Int64Array.from_buffers(pa.int64(), 1, [None, _buffer(place)])
    ends = _buffer(0, part.size)
    content = pa.LargeBinaryArray.from_buffers(pa.large_binary(), 1, [None, ends, part])
    return pa.Table.from_arrays([number, content], schema=PIECES).to_batches()[0]


def _buffer(*values: int) -> pa.Buffer:
    return pa.py_buffer(np.array(values, np.int64))
