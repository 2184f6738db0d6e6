"""Arrow tables from outside, as frames that hold nothing but types the landing knows.

Arrow's encodings of a type are that type: dictionaries, runs, views, large offsets, extensions. A
column of any other type, and a text that is not UTF-8, refuses the rows that have a value there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from decimal import Decimal
from typing import cast

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from thalweg.engine.shared.ingest.normalise import RAW, REFUSED

_FURTHEST_S = 1 << 40  # some 35,000 years: beyond every TIMESTAMP, and far from an overflow
_DIGITS = 38  # of a DECIMAL
_MOST_SHOWN = 200  # characters of a value
_BINARY = {
    pa.string(): pa.binary(),
    pa.large_string(): pa.large_binary(),
    pa.string_view(): pa.binary_view(),
}


def frame_of_arrow(
    table: pa.Table | pa.RecordBatch, wanted: Collection[str] | None = None
) -> pl.DataFrame:
    """The table's columns, or those of the wanted names in any case; of a repeated name the first.

    Raises pa.ArrowInvalid where the table's own buffers contradict each other.
    """
    lower = None if wanted is None else {name.lower() for name in wanted}
    reasons: dict[int, str] = {}
    columns: dict[str, pl.Series] = {}
    for name, given in zip(table.schema.names, table.columns, strict=True):
        if name in columns or (lower is not None and name.lower() not in lower):
            continue
        columns[name] = _column(name, _plain(given), reasons)
    frame = pl.DataFrame(columns)
    return with_refused(frame, reasons, dict.fromkeys(reasons)) if reasons else frame


def with_refused(
    frame: pl.DataFrame, reasons: dict[int, str], raw: dict[int, str | None]
) -> pl.DataFrame:
    """The batch, with what its source refuses of it: by row, why and what it was."""
    rows = range(frame.height)
    return frame.with_columns(
        pl.Series(REFUSED, [reasons.get(i) for i in rows], dtype=pl.String),
        pl.Series(RAW, [raw.get(i) for i in rows], dtype=pl.String),
    )


def _column(name: str, column: pa.ChunkedArray, reasons: dict[int, str]) -> pl.Series:
    if not _is_known(column.type):
        _refuse(column, lambda v: f"{name}: a value of type {column.type} is not taken", reasons)
        return pl.Series(name, [None] * len(column), dtype=pl.Null)
    if pa.types.is_decimal256(column.type):
        column = _narrow(name, column, reasons)
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        if not _is_text(column.type):
            raise
        column = _readable_texts(name, column, reasons)
    return cast(pl.Series, pl.from_arrow(column)).alias(name)


def _refuse(column: pa.ChunkedArray, reason: Callable[[int], str], reasons: dict[int, str]) -> None:
    for i, is_there in enumerate(column.is_valid().to_pylist()):
        if is_there:
            reasons.setdefault(i, reason(i))


def _narrow(name: str, column: pa.ChunkedArray, reasons: dict[int, str]) -> pa.ChunkedArray:
    """NULL, and a reason, in place of a number of more than 38 digits."""
    values: list[Decimal | None] = []
    for i, value in enumerate(column.to_pylist()):
        fits = value is None or len(value.as_tuple().digits) <= _DIGITS
        if not fits:
            reasons.setdefault(i, f"{name}: {value} has more than {_DIGITS} digits")
        values.append(value if fits else None)
    return pa.chunked_array([pa.array(values, pa.decimal128(_DIGITS, column.type.scale))])


def _readable_texts(name: str, column: pa.ChunkedArray, reasons: dict[int, str]) -> pa.ChunkedArray:
    """NULL, and a reason, in place of a text that is not UTF-8."""
    texts: list[str | None] = []
    binary = column.cast(pa.large_binary())
    binary.validate(full=True)
    for i, value in enumerate(binary.to_pylist()):
        try:
            texts.append(None if value is None else value.decode())
        except UnicodeDecodeError:
            shown = repr(value[:_MOST_SHOWN])[1:]
            reasons.setdefault(i, f"{name}: {shown} is not UTF-8")
            texts.append(None)
    return pa.chunked_array([texts], pa.large_string())


# --- types


def _plain(given: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
    """The same values without an encoding, in a type that Polars can take."""
    column = given if isinstance(given, pa.ChunkedArray) else pa.chunked_array([given])
    while True:
        kind = column.type
        for chunk in column.chunks:
            _check(chunk)
        if isinstance(kind, pa.DictionaryType):
            column = column.cast(kind.value_type)
        elif isinstance(kind, pa.RunEndEncodedType):
            try:
                column = _each(column, kind.value_type, pc.run_end_decode)
            except pa.ArrowNotImplementedError:
                return column
        elif isinstance(kind, pa.BaseExtensionType):
            column = _each(column, kind.storage_type, lambda chunk: chunk.storage)
        else:
            break
    if pa.types.is_float16(kind):
        return column.cast(pa.float32())
    if pa.types.is_timestamp(kind):
        return _without_zone(column)
    return column


def _check(chunk: pa.Array) -> None:
    """Raises pa.ArrowInvalid where the buffers do not hold what they should. Before anything else:
    Arrow's own kernels read beyond them, and decoding runs that contradict each other crashes."""
    chunk.validate()
    if isinstance(chunk, pa.DictionaryArray | pa.RunEndEncodedArray):
        _as_bytes(chunk).validate(full=True)


def _as_bytes(encoded: pa.DictionaryArray | pa.RunEndEncodedArray) -> pa.Array:
    """The same with bytes for texts: one that is not UTF-8 refuses its rows alone."""
    is_dictionary = isinstance(encoded, pa.DictionaryArray)
    values = encoded.dictionary if is_dictionary else encoded.values
    values.validate()
    if not _is_text(values.type):
        return encoded
    binary = values.view(_BINARY[values.type])
    if is_dictionary:
        return pa.DictionaryArray.from_arrays(encoded.indices, binary, safe=False)
    return pa.RunEndEncodedArray.from_arrays(encoded.run_ends, binary)


def _without_zone(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """In UTC, which is how Arrow keeps it in any zone, and not in seconds, which Polars lacks."""
    unit = column.type.unit
    bare = _each(column, pa.timestamp(unit), lambda chunk: chunk.view(pa.timestamp(unit)))
    if unit != "s":
        return bare
    seconds = bare.cast(pa.int64())
    near = pc.max_element_wise(pc.min_element_wise(seconds, _FURTHEST_S), -_FURTHEST_S)
    return (
        pc.if_else(seconds.is_valid(), near, None).cast(pa.timestamp("s")).cast(pa.timestamp("ms"))
    )


def _each(
    column: pa.ChunkedArray, kind: pa.DataType, change: Callable[[pa.Array], pa.Array]
) -> pa.ChunkedArray:
    return pa.chunked_array([change(chunk) for chunk in column.chunks], kind)


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def _is_known(kind: pa.DataType) -> bool:
    if pa.types.is_decimal(kind):
        return 0 <= kind.scale <= _DIGITS
    known = (
        pa.types.is_null,
        pa.types.is_boolean,
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_date,
        pa.types.is_timestamp,
        _is_text,
    )
    return any(check(kind) for check in known)
