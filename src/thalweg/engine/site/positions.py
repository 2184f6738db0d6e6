"""Where a reader of results is: the id of the last row that it has."""

from __future__ import annotations

import re
from typing import NamedTuple

_FORM = re.compile(r"(\d+)(?:-(\d+))?")
WHOLE_TICK = (1 << 62) - 1


class Position(NamedTuple):
    """A row's id: its tick, and its place among the query's rows of that tick, from 0.

    The same row has the same id whenever the tick is run. `7-3` is a row; `7` alone stands behind
    the last row of tick 7, so a reader can move on in ticks that said nothing.
    """

    tick: int
    row: int = WHOLE_TICK

    def __str__(self) -> str:
        return str(self.tick) if self.row == WHOLE_TICK else f"{self.tick}-{self.row}"


START = Position(0)


def parse_position(text: str) -> Position:
    """The inverse of str(). Raises ValueError."""
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no result id: write tick-index, such as 12-0, or a tick")
    return Position(int(found[1]), int(found[2]) if found[2] is not None else WHOLE_TICK)
