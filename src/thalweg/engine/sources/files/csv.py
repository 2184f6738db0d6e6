"""CSV: a row is a line; an empty value is NULL, `""` an empty text.

Arrow's reader takes a block at once. If it did not find exactly one row in every line, the block is
halved until the lines at fault stand alone; these are refused.
"""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl
import pyarrow as pa
import pyarrow.csv as pc

from thalweg.engine.sources.errors import SourceError
from thalweg.engine.sources.files.lines import Block, refused, together
from thalweg.engine.sources.files.text_columns import typed_columns
from thalweg.engine.sources.rows import columns_of
from thalweg.plan.catalog import StreamDef


class CsvLines:
    def __init__(self, stream: StreamDef, *, delimiter: str = ",", header: bool = True) -> None:
        self._stream = stream
        self._types = columns_of(stream)
        self._delimiter = delimiter
        self._has_header = header
        self._file: str | None = None
        self._width = 0
        self._places: dict[str, int] = {}  # of the stream's columns in a line

    def frame(self, block: Block) -> pl.DataFrame:
        assert block.file == self._file, "a file's first block comes first"
        rows = self._rows(block.text) if block.text else self._empty()
        if rows is None:
            rows = together(self._halved(block, block.numbered()))
        return typed_columns(rows, {n: t for n, t in self._types.items() if n in self._places})

    # --- the columns of a file

    def begin(self, block: Block) -> Block:
        self._file = block.file
        block = block.without_mark()
        if not self._has_header:
            self._width = len(self._types)
            self._places = {name: i for i, name in enumerate(self._types)}
            return block
        line = block.text.split(b"\n", 1)[0]
        names = self._header(block.file, line)
        self._width = len(names)
        by_lower = {name.strip().lower(): i for i, name in reversed(list(enumerate(names)))}
        added = self._stream.added_names
        for name in self._types:
            if name.lower() not in by_lower and name.lower() not in added:
                raise SourceError(
                    f"{self._stream.name}: {block.file} has no column {name}; "
                    f"its first line has {', '.join(names)}"
                )
        # What was added to the stream later may be missing: it is NULL.
        self._places = {n: by_lower[n.lower()] for n in self._types if n.lower() in by_lower}
        return block.without_first_rows(1)

    def _header(self, file: str, line: bytes) -> list[str]:
        options = pc.ParseOptions(delimiter=self._delimiter)
        try:
            table = pc.read_csv(pa.BufferReader(line + b"\n"), parse_options=options)
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            raise SourceError(
                f"{self._stream.name}: the first line of {file} names no columns: {error}"
            ) from None
        return [str(name) for name in table.column_names]

    def _empty(self) -> pl.DataFrame:
        return pl.DataFrame(schema=dict.fromkeys(self._types, pl.String))

    # --- rows

    def _rows(self, text: bytes) -> pl.DataFrame | None:
        """The rows of a text, if each of its lines is one."""
        if text.count(b"\r") != text.count(b"\r\n"):
            return None  # Arrow would take a carriage return alone for a line end
        last_line = text[text.rfind(b"\n", 0, -1) + 1 :]
        if last_line.count(b'"') % 2:
            return None  # a quote that is open at the end would not show in the number of rows
        try:
            table, odd = self._parsed(text, self._places.values())
        except (pa.ArrowInvalid, UnicodeDecodeError):
            return None
        return self._frame(table) if not odd and table.num_rows == text.count(b"\n") else None

    def _parsed(self, text: bytes, places: Iterable[int]) -> tuple[pa.Table, list[int]]:
        """The rows, and the number of values in those that have too many or too few."""
        names = [str(i) for i in range(self._width)]
        odd: list[int] = []

        def note(row: pc.InvalidRow) -> str:
            odd.append(row.actual_columns)
            return "skip"

        table = pc.read_csv(
            pa.BufferReader(text),
            read_options=pc.ReadOptions(column_names=names),
            parse_options=pc.ParseOptions(delimiter=self._delimiter, invalid_row_handler=note),
            convert_options=pc.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                include_columns=sorted({str(i) for i in places}),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
        return table, odd

    def _frame(self, table: pa.Table) -> pl.DataFrame:
        frame = pl.from_arrow(table)
        assert isinstance(frame, pl.DataFrame)
        return frame.select(pl.col(str(i)).alias(name) for name, i in self._places.items())

    # --- lines that are no rows

    def _halved(self, block: Block, lines: list[tuple[int, bytes]]) -> list[pl.DataFrame]:
        if len(lines) == 1:
            return [self._single(block, *lines[0])]
        rows = self._rows(b"".join(line + b"\n" for _, line in lines)) if lines else self._empty()
        if rows is not None:
            return [rows]
        middle = len(lines) // 2
        return self._halved(block, lines[:middle]) + self._halved(block, lines[middle:])

    def _single(self, block: Block, number: int, line: bytes) -> pl.DataFrame:
        why = "a carriage return within the line"
        if b"\r" not in line:
            try:
                # With all columns: a quote that is not closed takes the line end into its value.
                table, odd = self._parsed(line + b"\n", range(self._width))
            except (pa.ArrowInvalid, UnicodeDecodeError) as error:
                why = str(error)
            else:
                values = [column[0].as_py() for column in table.columns if len(column)]
                if not odd and not any("\n" in (v or "") for v in values):
                    return self._frame(table)
                is_open = line.count(b'"') % 2
                counted = f"{odd[0] if odd else self._width} values, not {self._width}"
                why = "a quote that is not closed" if is_open else counted
        return refused(list(self._types), block, number, line, why)
