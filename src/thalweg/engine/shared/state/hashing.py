"""The hash of a key: XXH64 over a canonical encoding, the same at every node and in every version.

Segments are sorted by it and buckets are ranges of it, so it belongs to the format of a data
directory and to what nodes say to each other. `HASHING` is its name there: whoever changes what is
defined here gives it another one.

The hash of one value is XXH64, with seed 0, of these bytes (integers are little-endian):

- a number that is whole and fits a signed integer of 64 bits: its 8 bytes in two's complement,
  whatever its type. BOOLEAN counts as 0 or 1, INTERVAL as its number, -0.0 as 0;
- another number, DOUBLE or DECIMAL: the 8 bytes of the nearest IEEE 754 double, ties to even; a NaN
  is always 0x7FF8000000000000;
- a TIMESTAMP: its microseconds since 1970-01-01 00:00, as a whole number; a DATE: its midnight's;
- a VARCHAR: its UTF-8 bytes, as they are.

The hash of NULL is 0x9E3779B185EBCA87, whatever its type. The hash of several values is XXH64, with
seed 0, of their hashes, 8 bytes each, in order. The hash of no values is 0.

Values that are equal as they are, without a rounding cast, have equal hashes across types. Where a
comparison rounds first (a BIGINT above 2^53, or a DECIMAL, against a DOUBLE), the key is what the
cast gives.

    0, 0.0, -0.0, FALSE, 1970-01-01    0x34C96ACDCADB1BBB
    1, 1.0, 1.00, TRUE                 0x9F29CB17A2A49995
    -1                                 0x85D136ADB773C6C9
    0.5, as DOUBLE or DECIMAL          0x48CB5E118059DA42
    ''                                 0xEF46DB3751D8E999
    'abc'                              0x44BC2CF5AD770999
    (1, 'abc')                         0x1BE30E53C55885BE
    (1, NULL)                          0x59FE8106077AEE1D
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl
import pyarrow as pa

from thalweg.engine.shared.frames import H
from thalweg.engine.shared.state import xxh64

HASHING = "xxh64-1"

_NULL = np.uint64(0x9E3779B185EBCA87)
_NAN = np.int64(0x7FF8000000000000)
_DAY = 86_400_000_000  # microseconds
_BLOCK = 8_192  # rows that stay in a core's cache from step to step
_SAMPLE = 1_024  # texts by which to tell whether they repeat
_NEWEST = pl.CompatLevel.newest()


def with_hash(frame: pl.DataFrame, keys: Sequence[pl.Expr]) -> pl.DataFrame:
    """The frame with `_h`, the hash of the keys."""
    return frame.hstack([pl.Series(H, key_hashes(frame, keys))])


def key_hashes(frame: pl.DataFrame, keys: Sequence[pl.Expr]) -> np.ndarray:
    """The hash of the keys for each row of the frame."""
    if all(key.meta.is_column() for key in keys):
        columns = [frame[key.meta.output_name()] for key in keys]
    else:
        columns = frame.select(_numbered(keys)).get_columns()
    hashes = hash_columns(columns)
    # Constants, or no keys at all, give one hash for all rows.
    return hashes if len(hashes) == frame.height else np.full(frame.height, hashes[0])


def _numbered(keys: Sequence[pl.Expr]) -> list[pl.Expr]:
    return [key.alias(f"k{i}") for i, key in enumerate(keys)]


def hash_columns(columns: Sequence[pl.Series]) -> np.ndarray:
    """The hash of each row. A column of one row counts for all rows; no columns have one row."""
    if not columns:
        return np.zeros(1, dtype=np.uint64)
    lengths = [len(c) for c in columns]
    rows = min(lengths) and max(lengths)
    if rows <= _BLOCK:
        return _hash_block(columns, rows)
    if len(columns) == 1 and _repeats(columns[0]):
        return _hash_dictionary(columns[0])
    blocks = [
        _hash_block(
            [c.slice(first, _BLOCK) if len(c) > 1 else c for c in columns],
            min(_BLOCK, rows - first),
        )
        for first in range(0, rows, _BLOCK)
    ]
    return np.concatenate(blocks)


def _hash_block(columns: Sequence[pl.Series], rows: int) -> np.ndarray:
    if len(columns) == 1:
        return _hash_column(columns[0])
    hashes = np.empty((len(columns), rows), dtype=np.uint64)
    for row, column in zip(hashes, columns, strict=True):
        row[:] = _hash_column(column)
    return xxh64.of_words(hashes)


def _repeats(column: pl.Series) -> bool:
    """Whether a text looks like one of few, by a sample. NULLs have no place in a dictionary."""
    if column.dtype != pl.String or column.null_count():
        return False
    sample = column.gather_every(len(column) // _SAMPLE)
    return sample.n_unique() < 0.9 * len(sample)


def _hash_dictionary(column: pl.Series) -> np.ndarray:
    """Each different text is hashed once."""
    encoded = column.to_arrow(compat_level=pl.CompatLevel.oldest()).dictionary_encode()
    hashes = xxh64.of_bytes(encoded.dictionary.cast(pa.large_binary()).to_pylist())
    found: np.ndarray = hashes[encoded.indices.to_numpy()]
    return found


def _hash_column(column: pl.Series) -> np.ndarray:
    nulls = column.null_count()
    if nulls == len(column):
        return np.full(nulls, _NULL)
    if nulls:
        hashes = np.full(len(column), _NULL)
        is_valid = column.to_arrow(compat_level=_NEWEST).is_valid().to_numpy(zero_copy_only=False)
        hashes[is_valid] = _hash_column(column.filter(pl.Series(is_valid)))
        return hashes
    dtype = column.dtype
    if dtype == pl.String:
        return xxh64.of_bytes(column.cast(pl.Binary).to_list())
    encode = _ENCODINGS.get(type(dtype))
    if encode is None or (isinstance(dtype, pl.Datetime) and dtype != pl.Datetime("us")):
        raise TypeError(f"no hash is defined for values of type {dtype}")
    return xxh64.of_words(encode(column).view(np.uint64)[None])


# --- canonical words, of columns without NULLs


def _integers(column: pl.Series) -> np.ndarray:
    return column.to_numpy().astype(np.int64, copy=False)


def _timestamps(column: pl.Series) -> np.ndarray:
    return column.to_numpy().view(np.int64)


def _dates(column: pl.Series) -> np.ndarray:
    return column.to_numpy().view(np.int64) * _DAY


def _doubles(column: pl.Series) -> np.ndarray:
    values = column.to_numpy().astype(np.float64, copy=False)
    with np.errstate(invalid="ignore"):
        integers = values.astype(np.int64)
    is_whole = (integers == values) & (values < 2.0**63)
    words = np.where(is_whole, integers, values.view(np.int64))
    words[np.isnan(values)] = _NAN
    return words


def _decimals(column: pl.Series) -> np.ndarray:
    array = column.to_arrow()
    assert array.type.bit_width == 128
    halves = np.frombuffer(array.buffers()[1], dtype=np.int64).reshape(-1, 2)
    low, high = halves[array.offset : array.offset + len(array)].T
    power = 10**array.type.scale
    if power > 10**18:
        return _wide_decimals(low, high, power)
    integers = low // power
    is_whole = integers * power == low
    words: np.ndarray = np.where(is_whole, integers, (low / float(power)).view(np.int64))
    # Up to 2^53 both sides of the division are doubles without loss, so it rounds once.
    is_done = is_whole | ((low >= -(2**53)) & (low <= 2**53))
    is_done &= high == low >> 63
    if not is_done.all():
        wide = np.flatnonzero(~is_done)
        words[wide] = _wide_decimals(low[wide], high[wide], power)
    return words


def _wide_decimals(low: np.ndarray, high: np.ndarray, power: int) -> np.ndarray:
    """Decimals of 128 bits, as Python's integers: dividing those rounds once, whatever the size."""
    values = ((high.astype(object) << 64) + low.view(np.uint64).astype(object)).tolist()
    words = np.array([value / power for value in values], dtype=np.float64).view(np.int64)
    for row, value in enumerate(values):
        integer, rest = divmod(value, power)
        if not rest and -(2**63) <= integer < 2**63:
            words[row] = integer
    return words


_ENCODINGS: dict[type[pl.DataType], Callable[[pl.Series], np.ndarray]] = {
    pl.Boolean: _integers,
    pl.Int8: _integers,
    pl.Int16: _integers,
    pl.Int32: _integers,
    pl.Int64: _integers,
    pl.UInt8: _integers,
    pl.UInt16: _integers,
    pl.UInt32: _integers,
    pl.Float32: _doubles,
    pl.Float64: _doubles,
    pl.Decimal: _decimals,
    pl.Date: _dates,
    pl.Datetime: _timestamps,
}
