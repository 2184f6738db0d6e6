"""Random numbers from a seed, the same on every machine and under every hash seed.

SplitMix64 (Steele, Lea and Flood, 2014): one 64-bit word of state, fast enough in plain Python, and
any seed is a good one. Each protocol of each node has a generator of its own, grown from Init's
seed; there is no global one.
"""

from __future__ import annotations

import hashlib
from collections.abc import MutableSequence, Sequence
from typing import TypeVar

T = TypeVar("T")

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_UNIT = 1.0 / (1 << 53)


def stable_hash(text: str) -> int:
    """64 bits that depend on the text alone, unlike `hash`."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def seed_of(seed: int, *labels: str | int) -> int:
    """A seed for a part of something that has one: independent parts get independent numbers."""
    for label in labels:
        seed = Generator(seed ^ stable_hash(str(label))).bits()
    return seed


class Generator:
    __slots__ = ("_state",)

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK

    def bits(self) -> int:
        """64 random bits."""
        self._state = z = (self._state + _GOLDEN) & _MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return z ^ (z >> 31)

    def below(self, bound: int) -> int:
        """0 to bound − 1. (The bias of taking the high bits is below 2⁻⁶⁴ · bound.)"""
        if bound < 1:
            raise ValueError(f"nothing can be drawn below {bound}")
        return (self.bits() * bound) >> 64

    def between(self, low: int, high: int) -> int:
        """From low to high, both included."""
        return low + self.below(high - low + 1)

    def unit(self) -> float:
        """In [0, 1)."""
        return (self.bits() >> 11) * _UNIT

    def chance(self, probability: float) -> bool:
        return (self.bits() >> 11) * _UNIT < probability

    def choice(self, options: Sequence[T]) -> T:
        return options[self.below(len(options))]

    def sample(self, options: Sequence[T], count: int) -> list[T]:
        """`count` different ones (all, where there are fewer), in random order."""
        rest = list(options)
        count = min(count, len(rest))
        for i in range(count):
            j = i + self.below(len(rest) - i)
            rest[i], rest[j] = rest[j], rest[i]
        return rest[:count]

    def shuffle(self, items: MutableSequence[T]) -> None:
        for i in range(len(items) - 1, 0, -1):
            j = self.below(i + 1)
            items[i], items[j] = items[j], items[i]
