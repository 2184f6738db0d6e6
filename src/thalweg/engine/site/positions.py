"""Where a reader of results is: behind a row, or at an instant before which it has all rows."""

from __future__ import annotations

import re
from typing import NamedTuple

from thalweg.plan.windows import BEGINNING, FOREVER

_FORM = re.compile(r"(\d+)\.(-?\d+|start|end)(?:\.(\d+))?")
_WORDS = {BEGINNING: "start", FOREVER: "end"}
_INSTANTS = {word: instant for instant, word in _WORDS.items()}
_LONGEST = 60  # characters that an error quotes
_ALL_BEFORE = -1  # in place of an ordinal


class Position(NamedTuple):
    """A row's id (`3.1700.0`): the query's creation number, the instant, and the row's place among
    those of its instant. Without the last (`3.1700`), a frontier: all rows before that instant, so
    that a reader can move on while the query says nothing.

    Both are the same wherever and however often the row is computed.
    """

    run: int
    instant: int
    ordinal: int = _ALL_BEFORE

    @property
    def is_frontier(self) -> bool:
        return self.ordinal == _ALL_BEFORE

    def __str__(self) -> str:
        at = f"{self.run}.{_WORDS.get(self.instant, self.instant)}"
        return at if self.is_frontier else f"{at}.{self.ordinal}"


START = Position(0, BEGINNING)


def parse_position(text: str) -> Position:
    """The inverse of str(). Raises ValueError."""
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise ValueError(
            f"{text[:_LONGEST]!r} is not a result id: write run.instant.ordinal, such as 3.1700.0"
        )
    run, instant, ordinal = found.groups()
    at = _INSTANTS[instant] if instant in _INSTANTS else int(instant)
    if not BEGINNING <= at <= FOREVER or int(run) > FOREVER:
        raise ValueError(f"{text[:_LONGEST]!r} is not a result id: it is out of range")
    return Position(int(run), at, _ALL_BEFORE if ordinal is None else min(int(ordinal), FOREVER))
