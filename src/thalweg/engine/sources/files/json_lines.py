"""JSON lines: a row is an object in a line; a key that it lacks is NULL.

Arrow's reader takes a block at once if every line is an object with values of the declared types.
If not, the block is cut into pieces, and those at fault again; what is left then is read line by
line, and what is no object is refused.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import msgspec
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from thalweg.engine.shared.ingest.values import WHOLE_IN_DOUBLE
from thalweg.engine.sources.files.lines import Block, Lines, is_utf8, refused, together
from thalweg.engine.sources.files.text_columns import typed_columns
from thalweg.engine.sources.rows import columns_of, frame_of_rows
from thalweg.plan.catalog import StreamDef
from thalweg.plan.types import Kind, SqlType

_ARROW: dict[Kind, pa.DataType] = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.INTEGER: pa.int64(),
    Kind.BIGINT: pa.int64(),
    Kind.DOUBLE: pa.float64(),
}
_BLOCK_BYTES = 1 << 24
_PIECES = 16  # of lines that are not plain together
_MOST_BAD = 4  # of these; where more are, further cuts do not pay
_FEW = 256  # lines that are read one by one rather than cut again


class JsonLines:
    def __init__(self, stream: StreamDef) -> None:
        self._stream = stream
        self._types = columns_of(stream)
        self._schema = pa.schema([(name, _arrow(sql)) for name, sql in self._types.items()])
        # A DECIMAL must not pass through a float on its way.
        exact = any(sql.kind is Kind.DECIMAL for sql in self._types.values())
        self._decode = msgspec.json.Decoder(float_hook=Decimal if exact else None).decode
        self._other_spelling = {
            name: re.compile(rb'"(?!%b")(?i:%b)"\s*:' % (2 * (re.escape(name.encode()),)))
            for name in self._types
        }

    def begin(self, block: Block) -> Block:
        return block.without_mark()

    def frame(self, block: Block) -> pl.DataFrame:
        rows = self._all_plain(block.text.replace(b"\r\n", b"\n"))
        if rows is None:
            rows = together(self._in_pieces(block, block.numbered()))
        return typed_columns(rows, self._types)

    def _in_pieces(self, block: Block, lines: Lines) -> list[pl.DataFrame]:
        """The rows of lines that are not all plain."""
        if len(lines) <= _FEW:
            return [self._one_by_one(block, lines)]
        size = -(-len(lines) // _PIECES)
        pieces = [lines[i : i + size] for i in range(0, len(lines), size)]
        plain = [self._all_plain(b"".join(x + b"\n" for _, x in piece)) for piece in pieces]
        again = (
            self._in_pieces if sum(x is None for x in plain) <= _MOST_BAD else self._all_one_by_one
        )
        return [
            part
            for piece, rows in zip(pieces, plain, strict=True)
            for part in (again(block, piece) if rows is None else [rows])
        ]

    def _all_one_by_one(self, block: Block, lines: Lines) -> list[pl.DataFrame]:
        return [self._one_by_one(block, lines)]

    def _all_plain(self, text: bytes) -> pl.DataFrame | None:
        # Lines that all start with { and end with } can't continue each other: a row a line.
        lines = text.count(b"\n")
        if not text.startswith(b"{") or text.count(b"}\n{") + 1 != lines or not is_utf8(text):
            return None
        try:
            table = pj.read_json(
                pa.BufferReader(text),
                read_options=pj.ReadOptions(block_size=max(len(text), _BLOCK_BYTES)),
                parse_options=pj.ParseOptions(
                    explicit_schema=self._schema, unexpected_field_behavior="ignore"
                ),
            )
        except (pa.ArrowInvalid, UnicodeDecodeError):
            return None
        if table.num_rows != lines or self._may_be_spelt_otherwise(table, text):
            return None
        if not all(_is_surely_exact(column) for column in table.columns):
            return None
        frame = pl.from_arrow(table)
        assert isinstance(frame, pl.DataFrame)
        return frame

    def _may_be_spelt_otherwise(self, table: pa.Table, text: bytes) -> bool:
        """Arrow knows keys in one spelling only: NULL may mean another one."""
        return any(
            table[name].null_count and pattern.search(text)
            for name, pattern in self._other_spelling.items()
        )

    def _one_by_one(self, block: Block, lines: Lines) -> pl.DataFrame:
        """All lines that are objects as one frame, the others refused where they stand."""
        objects: list[dict[str, Any]] = []
        bad: list[tuple[int, pl.DataFrame]] = []  # behind so many objects
        for number, line in lines:
            try:
                value = self._decode(line)
                why = "not a JSON object"
            except (msgspec.MsgspecError, ValueError, ArithmeticError) as error:
                value, why = None, f"not JSON: {error}"
            if isinstance(value, dict):
                objects.append(value)
            else:
                bad.append((len(objects), refused(list(self._types), block, number, line, why)))
        rows = frame_of_rows(self._stream, objects)
        if not bad:
            return rows
        parts, done = [], 0
        for behind, line_frame in bad:
            parts += [rows.slice(done, behind - done), line_frame]
            done = behind
        return together([*parts, rows.slice(done)])


def _is_surely_exact(column: pa.ChunkedArray) -> bool:
    """Beyond some size a whole number may not be the DOUBLE that Arrow reads it as."""
    if not pa.types.is_floating(column.type):
        return True
    largest = pc.max(pc.abs(column)).as_py()
    return largest is None or largest < WHOLE_IN_DOUBLE


def _arrow(sql: SqlType) -> pa.DataType:
    if sql.kind is Kind.DECIMAL:
        return pa.decimal128(38, sql.scale)
    return _ARROW.get(sql.kind, pa.string())
