"""What has passed for tolerance classes, as bytes: where a home goes on after a restart.

Keys and limits are not written: they follow from the rows that are held.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from io import BytesIO

import msgspec
import numpy as np
import polars as pl

from thalweg.plan.catalog import StreamDef
from thalweg.plan.nodes import Tolerant
from thalweg.runtime.network.labels.families import NOTHING, Family
from thalweg.runtime.network.labels.passing import Passing


class _Family(msgspec.Struct, frozen=True, array_like=True):
    """For which class (a place in the list) which of the rows has passed last; of classes that
    count rows, also how many there have been since, below 0."""

    per: tuple[str, ...]
    column: str | None
    classes: list[int]
    class_: bytes
    row: bytes
    number: bytes | None


class _Kept(msgspec.Struct, frozen=True, array_like=True):
    instant: int
    rows: bytes | None
    families: list[_Family]


def packed(passing: Passing) -> bytes:
    passing.tidy()
    numbers = passing.numbers_held()
    rows = _frame(passing.rows(numbers)) if len(numbers) else None
    families = [_family(passing, f, numbers) for f in passing.families.values()]
    return msgspec.msgpack.encode(_Kept(passing.instant, rows, families))


def unpacked(data: bytes, stream: StreamDef, classes: Mapping[int, Tolerant]) -> Passing:
    """Of the classes that it has, those that are still there."""
    kept = msgspec.msgpack.decode(data, type=_Kept)
    passing = Passing(kept.instant)
    there = {c for f in kept.families for c in f.classes if c in classes}
    passing.start(stream, {c: classes[c] for c in sorted(there)})
    if kept.rows is not None:
        rows = pl.read_ipc(BytesIO(kept.rows))
        passing.hold(np.arange(rows.height), rows)
        passing.next_row = rows.height
        for family in kept.families:
            if (family.per, family.column) in passing.families:
                _restore(passing, family, rows)
    return passing


def _family(passing: Passing, family: Family, numbers: np.ndarray) -> _Family:
    key, class_ = np.nonzero(family.row != NOTHING)
    row = np.searchsorted(numbers, family.row[key, class_])
    number = None
    if family.column is None:
        counts = passing.keyings[family.per].counts
        number = _bytes(family.numbers_held(key, class_) - counts[key])
    classes = list(family.classes)
    return _Family(family.per, family.column, classes, _bytes(class_), _bytes(row), number)


def _restore(passing: Passing, kept: _Family, rows: pl.DataFrame) -> None:
    family, keying = passing.families[kept.per, kept.column], passing.keyings[kept.per]
    class_, row = _numbers(kept.class_), _numbers(kept.row)
    known = {c: place for place, c in enumerate(family.classes)}
    place = np.array([known.get(c, NOTHING) for c in kept.classes], dtype=np.int64)[class_]
    is_there = place != NOTHING
    row, place = row[is_there], place[is_there]
    key = keying.place(rows)[row]
    keying.counts = np.zeros(len(keying.places), dtype=np.int64)
    family.make_room(len(keying.places))
    if kept.number is not None:
        family.restore(key, place, row, _numbers(kept.number)[is_there])
    else:
        assert kept.column is not None
        family.restore(key, place, row, rows[kept.column][row])


# --- as bytes


def _frame(frame: pl.DataFrame) -> bytes:
    out = BytesIO()
    frame.write_ipc(out, compression="zstd")
    return out.getvalue()


def _bytes(values: np.ndarray) -> bytes:
    return zlib.compress(values.astype("<i8").tobytes(), 1)


def _numbers(packed: bytes) -> np.ndarray:
    return np.frombuffer(zlib.decompress(packed), dtype="<i8").astype(np.int64)
