"""XXH64, by the library and on arrays, against the specification."""

import numpy as np
import pytest

from thalweg.engine.shared.state import xxh64

PRIMES = (
    11400714785074694791,
    14029467366897019727,
    1609587929392839161,
    9650029242287828579,
    2870177450012600261,
)
MASK = (1 << 64) - 1


def rotated(x: int, bits: int) -> int:
    return (x << bits | x >> (64 - bits)) & MASK


def round_(lane: int, word: bytes) -> int:
    total = (lane + int.from_bytes(word, "little") * PRIMES[1]) & MASK
    return rotated(total, 31) * PRIMES[0] & MASK


def specified(data: bytes) -> int:
    """XXH64 with seed 0, word for word as xxHash's doc/xxhash_spec.md has it."""
    prime1, prime2, prime3, prime4, prime5 = PRIMES
    length = len(data)
    if length >= 32:
        lanes = [prime1 + prime2 & MASK, prime2, 0, -prime1 & MASK]
        while len(data) >= 32:
            lanes = [round_(v, data[8 * i : 8 * i + 8]) for i, v in enumerate(lanes)]
            data = data[32:]
        h = sum(rotated(v, b) for v, b in zip(lanes, (1, 7, 12, 18), strict=True)) & MASK
        for lane in lanes:
            h = ((h ^ round_(0, lane.to_bytes(8, "little"))) * prime1 + prime4) & MASK
    else:
        h = prime5
    h = h + length & MASK
    while len(data) >= 8:
        h = (rotated(h ^ round_(0, data[:8]), 27) * prime1 + prime4) & MASK
        data = data[8:]
    if len(data) >= 4:
        first = int.from_bytes(data[:4], "little") * prime1 & MASK
        h = (rotated(h ^ first, 23) * prime2 + prime3) & MASK
        data = data[4:]
    for byte in data:
        h = rotated(h ^ (byte * prime5 & MASK), 11) * prime1 & MASK
    h = (h ^ h >> 33) * prime2 & MASK
    h = (h ^ h >> 29) * prime3 & MASK
    return h ^ h >> 32


@pytest.mark.parametrize(
    ("data", "known"),
    [
        (b"", 0xEF46DB3751D8E999),
        (b"a", 0xD24EC4F1A98C6E5B),
        (b"abc", 0x44BC2CF5AD770999),
        (b"Nobody inspects the spammish repetition", 0xFBCEA83C8A378BF1),
    ],
)
def test_known_values(data, known):
    assert specified(data) == known
    assert xxh64.of_bytes([data]).tolist() == [known]


@pytest.mark.parametrize("seed", range(5))
def test_bytes_of_every_length(seed):
    random = np.random.default_rng(seed)
    inputs = [random.bytes(length) for length in range(201)]
    assert xxh64.of_bytes(inputs).tolist() == [specified(data) for data in inputs]


@pytest.mark.parametrize("inputs", [0, 1, xxh64.FEW, xxh64.FEW + 1, 1_000])
@pytest.mark.parametrize("count", range(1, 13))
def test_words_few_and_many(count, inputs):
    words = np.random.default_rng(count).integers(0, 1 << 64, (count, inputs), dtype=np.uint64)
    before = words.copy()
    assert xxh64.of_words(words).tolist() == [specified(w.tobytes()) for w in words.T.copy()]
    assert (words == before).all()
