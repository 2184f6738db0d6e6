"""BUCKET: which of 128 a value falls in, by the definition in `engine/shared/state/hashing.py`.

Written once more, value by value, so that it judges the engine's own.
"""

from __future__ import annotations

import struct
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

_P1, _P2, _P3, _P4, _P5 = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
_MASK = (1 << 64) - 1
_NULL = 0x9E3779B185EBCA87
_EPOCH = datetime(1970, 1, 1)


def bucket(value: Any) -> int:
    """The first seven bits of its hash."""
    return (_NULL if value is None else _xxh64(_encoded(value))) >> 57


def _encoded(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, date):
        moment = value if isinstance(value, datetime) else datetime(*value.timetuple()[:3])
        value = (moment - _EPOCH) // timedelta(microseconds=1)
    if _is_whole(value) and -(1 << 63) <= value < 1 << 63:
        return struct.pack("<q", int(value))
    return struct.pack("<d", float(value) if isinstance(value, Decimal) else value)


def _is_whole(value: Any) -> bool:
    if isinstance(value, Decimal):
        return value == value.to_integral_value()
    return isinstance(value, int) or float(value).is_integer()


def _xxh64(data: bytes) -> int:
    """XXH64 with seed 0."""
    place = 0
    if len(data) >= 32:
        lanes = [(_P1 + _P2) & _MASK, _P2, 0, -_P1 & _MASK]
        while place + 32 <= len(data):
            words = struct.unpack_from("<4Q", data, place)
            lanes = [_round(lane, word) for lane, word in zip(lanes, words, strict=True)]
            place += 32
        found = sum(_rotated(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True))
        for lane in lanes:
            found = ((found ^ _round(0, lane)) * _P1 + _P4) & _MASK
    else:
        found = _P5
    found = (found + len(data)) & _MASK
    while place + 8 <= len(data):
        (word,) = struct.unpack_from("<Q", data, place)
        found = (_rotated(found ^ _round(0, word), 27) * _P1 + _P4) & _MASK
        place += 8
    if place + 4 <= len(data):
        (word,) = struct.unpack_from("<I", data, place)
        found = (_rotated(found ^ (word * _P1 & _MASK), 23) * _P2 + _P3) & _MASK
        place += 4
    for byte in data[place:]:
        found = _rotated(found ^ (byte * _P5 & _MASK), 11) * _P1 & _MASK
    found = (found ^ found >> 33) * _P2 & _MASK
    found = (found ^ found >> 29) * _P3 & _MASK
    return found ^ found >> 32


def _round(lane: int, word: int) -> int:
    return _rotated((lane + word * _P2) & _MASK, 31) * _P1 & _MASK


def _rotated(word: int, by: int) -> int:
    return (word << by | word >> (64 - by)) & _MASK
