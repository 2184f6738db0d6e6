"""How many cases a drawn test plays: some in the suite, many in `make soak` (THALWEG_DRAWN)."""

import os
from collections.abc import Iterable
from typing import TypeVar

_TIMES = int(os.environ.get("THALWEG_DRAWN", "1"))

T = TypeVar("T")


def examples(count: int) -> int:
    return count * _TIMES


def some(cases: Iterable[T], one_in: int) -> list[T]:
    """One in so many of a long list of cases; in the soak, all."""
    return list(cases)[:: one_in if _TIMES == 1 else 1]


def in_turn(cases: Iterable[T], turn: int, of: int) -> list[T]:
    """Where each case could be played in several ways: each in one of them; in the soak, in all."""
    return list(cases)[turn if _TIMES == 1 else 0 :: of if _TIMES == 1 else 1]
