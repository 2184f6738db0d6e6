"""XXH64 with seed 0 (Yann Collet, xxHash), of many inputs.

Inputs of any length go through the library one by one. For inputs of the same few words, which
numbers are, that is mostly the price of calls: here each step is done for all of them before the
next one, on arrays of unsigned 64-bit integers, which wrap around as the algorithm wants it.

The names are those of the specification: the *stripes* of an input, four words of 8 bytes each, go
through four *lanes*, which are merged; the words that are left follow one by one; the *avalanche*
ends it.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from xxhash import xxh64_digest

FEW = 256  # up to so many inputs, calls of the library take less time than those of NumPy

_BITS = tuple(np.array(i, dtype=np.uint64) for i in range(65))  # quicker operands than integers
_PRIME1, _PRIME2, _PRIME3, _PRIME4, _PRIME5 = (
    np.array(prime, dtype=np.uint64)
    for prime in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)
_LANES = np.array([[_PRIME1 + _PRIME2], [_PRIME2], [0], [-_PRIME1]], dtype=np.uint64)
_TURNS = np.array([[1], [7], [12], [18]], dtype=np.uint64)
_TURNS_BACK = np.uint64(64) - _TURNS


def of_bytes(inputs: Iterable[bytes]) -> np.ndarray:
    # Digests are big-endian; joined they take less time than as integers of Python.
    return np.frombuffer(b"".join(map(xxh64_digest, inputs)), dtype=">u8").astype(np.uint64)


def of_words(words: np.ndarray) -> np.ndarray:
    """The hashes of n inputs of k little-endian words each, given as a matrix of k × n."""
    count, inputs = words.shape
    if inputs <= FEW:
        one_by_one = np.ascontiguousarray(words.T, dtype="<u8").view(f"V{8 * count}")
        return of_bytes(one_by_one.ravel().tolist())
    striped = count - count % 4
    hashes = _of_stripes(words[:striped]) if striped else np.full(inputs, _PRIME5)
    hashes += np.uint64(8 * count)
    spare = np.empty_like(hashes)
    for word in words[striped:]:
        hashes ^= _round(word, spare)
        _rotate(hashes, 27, spare)
        hashes *= _PRIME1
        hashes += _PRIME4
    _avalanche(hashes, spare)
    return hashes


def _of_stripes(words: np.ndarray) -> np.ndarray:
    lanes = np.repeat(_LANES, words.shape[1], axis=1)
    spare = np.empty_like(lanes)
    for first in range(0, len(words), 4):
        lanes += words[first : first + 4] * _PRIME2
        _rotate(lanes, 31, spare)
        lanes *= _PRIME1
    hashes: np.ndarray = np.add.reduce(lanes << _TURNS | lanes >> _TURNS_BACK)
    for lane in _round(lanes, spare):
        hashes ^= lane
        hashes *= _PRIME1
        hashes += _PRIME4
    return hashes


def _round(words: np.ndarray, spare: np.ndarray) -> np.ndarray:
    words = words * _PRIME2
    _rotate(words, 31, spare)
    words *= _PRIME1
    return words


def _avalanche(hashes: np.ndarray, spare: np.ndarray) -> None:
    for bits, prime in ((33, _PRIME2), (29, _PRIME3)):
        np.right_shift(hashes, _BITS[bits], out=spare)
        hashes ^= spare
        hashes *= prime
    np.right_shift(hashes, _BITS[32], out=spare)
    hashes ^= spare


def _rotate(values: np.ndarray, bits: int, spare: np.ndarray) -> None:
    np.left_shift(values, _BITS[bits], out=spare)
    np.right_shift(values, _BITS[64 - bits], out=values)
    values |= spare
