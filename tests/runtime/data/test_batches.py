"""Rows and pieces of state as record batches."""

from __future__ import annotations

import subprocess
import sys

import polars as pl
import pyarrow as pa

from thalweg.runtime.data.batches import PIECES, batch_of, piece_batch

ROWS = pl.DataFrame({"a": [1, None], "b": ["x", "yy"]})


def test_rows_come_as_one_batch_of_the_publication_s_schema() -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.string())])
    batch = batch_of(ROWS, schema)
    assert batch.schema == schema
    assert batch.to_pylist() == ROWS.to_dicts()
    nothing = batch_of(ROWS.clear(), schema)
    assert nothing.schema == schema
    assert nothing.num_rows == 0


def test_a_piece_is_bytes_and_its_place() -> None:
    content = pa.py_buffer(b"some bytes").slice(5, 3)
    batch = piece_batch(7, content)
    assert batch.schema == PIECES
    assert batch.to_pylist() == [{"piece": 7, "content": b"byt"}]


def test_nobody_waits_for_pandas_when_a_node_first_publishes() -> None:
    code = (
        "import sys, polars as pl, pyarrow as pa\n"
        "from thalweg.runtime.data.batches import batch_of, piece_batch\n"
        "rows = pl.DataFrame({'a': [1], 'b': ['x']})\n"
        "schema = rows.to_arrow().schema\n"
        "for some in rows, rows.clear():\n"
        "    batch_of(some, schema)\n"
        "    batch_of(some, pa.schema([('a', pa.int32()), ('b', pa.string())]))\n"
        "piece_batch(1, pa.py_buffer(b'x'))\n"
        "sys.exit('pandas' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
