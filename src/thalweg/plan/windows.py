"""Windows: when a stream's tuple is in the relation.

Application time is discrete; all lengths here are instants, in units of the stream's RESOLUTION.
An interval is half open, `[start, end)`; FOREVER as an end means that the tuple never leaves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from thalweg.plan.types import BIGINT, TIMESTAMP, SqlType

FOREVER = (1 << 63) - 1
# Before every instant; so far from the end of 64 bits that a window's length can be taken away.
BEGINNING = -(1 << 62)


def window_start(timestamp: Any, slide: int) -> Any:
    """The instant at which a window that slides lets a tuple in: its own, or the next boundary.

    A timestamp, a length and what comes of them may be numbers, arrays or columns (`Any`).
    """
    return timestamp if slide == 1 else -(-timestamp // slide) * slide


def window_end(timestamp: Any, length: Any, slide: int) -> Any:
    """The first instant at which the tuple is gone."""
    if slide == 1:
        return timestamp + (length + 1)
    return ((timestamp + length) // slide + 1) * slide


@dataclass(frozen=True, slots=True)
class Bounds:
    """What kind of values a window's `window_start` and `window_end` are.

    Counted instants where the streams' own timestamps are numbers, else points in time; then an
    instant lasts `resolution_us`.
    """

    type: SqlType
    resolution_us: int = 1

    def __post_init__(self) -> None:
        if self.type not in (BIGINT, TIMESTAMP):
            raise ValueError("a window's bounds are BIGINT or TIMESTAMP")
        if self.type == BIGINT and self.resolution_us != 1:
            raise ValueError("counted instants are as they are")


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """`[Range length Slide slide]`; Now is length 0, Unbounded is length None."""

    length: int | None
    slide: int = 1

    def __post_init__(self) -> None:
        if self.length is not None and self.length < 0:
            raise ValueError("a window's length can't be negative")
        if self.slide < 1:
            raise ValueError("a window's slide is at least one instant")

    bounds: ClassVar[Bounds | None] = None

    @property
    def delay(self) -> int:
        """How many instants may pass between a tuple's own and the one that lets it in."""
        return self.slide - 1

    def interval(self, timestamp: Any) -> tuple[Any, Any]:
        """Where a tuple of this timestamp is valid; empty (start >= end) if it never appears."""
        end = FOREVER if self.length is None else window_end(timestamp, self.length, self.slide)
        return window_start(timestamp, self.slide), end

    def __str__(self) -> str:
        slide = f" Slide {self.slide}" if self.slide != 1 else ""
        if self.length is None:
            return f"[Unbounded{slide}]"
        if self.length == 0:
            return f"[Now{slide}]"
        return f"[Range {self.length}{slide}]"


@dataclass(frozen=True, slots=True)
class RowsWindow:
    """`[Partition By keys Rows count Slide slide]`, keys by column position.

    With the tuples of a key numbered from 1, tuple i is in the window from the arrival of tuple
    ⌈i/slide⌉·slide until the arrival of tuple ⌈(i+count)/slide⌉·slide.
    """

    count: int
    slide: int = 1
    partition_by: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueError("a Rows window holds at least one row")
        if self.slide < 1:
            raise ValueError("a Rows window slides by at least one row")

    def entering_row(self, number: int) -> int:
        """The number of the row whose arrival lets row `number` in."""
        return -(-number // self.slide) * self.slide

    def leaving_row(self, number: int) -> int:
        """The number of the row whose arrival pushes row `number` out."""
        return -(-(number + self.count) // self.slide) * self.slide

    bounds: ClassVar[Bounds | None] = None

    def __str__(self) -> str:
        keys = ", ".join(f"#{k}" for k in self.partition_by)
        partition = f"Partition By {keys} " if keys else ""
        slide = f" Slide {self.slide}" if self.slide != 1 else ""
        return f"[{partition}Rows {self.count}{slide}]"


@dataclass(frozen=True, slots=True)
class HopWindow:
    """`[Hop length EVERY slide]`; `[Tumble length]` is the one with slide = length.

    At τ, with e the last multiple of the slide up to τ, it holds the tuples of [e - length, e).
    Where `bounds` are wanted, each has e - length and e as two columns more. So without them a
    tuple is one row, valid from the first boundary after it on; with them it is a row for each
    boundary e, valid over [e, e + slide).
    """

    length: int
    slide: int
    bounds: Bounds | None = None

    def __post_init__(self) -> None:
        if self.slide < 1:
            raise ValueError("a window hops by at least one instant")
        if self.length < self.slide or self.length % self.slide:
            raise ValueError("a window's hop divides its length")

    @property
    def delay(self) -> int:
        """How many instants may pass between a tuple's own and the one that lets it in."""
        return self.slide

    @property
    def count(self) -> int:
        """In how many windows a tuple is."""
        return self.length // self.slide

    def interval(self, timestamp: Any) -> tuple[Any, Any]:
        """Where a tuple of this timestamp is valid, its bounds aside."""
        first = timestamp // self.slide + 1
        return first * self.slide, (first + self.count) * self.slide

    def __str__(self) -> str:
        if self.slide == self.length:
            return f"[Tumble {self.length}]"
        return f"[Hop {self.length} Every {self.slide}]"


@dataclass(frozen=True, slots=True)
class SessionWindow:
    """`[Session gap Partition By keys]`, keys by column position.

    Consecutive tuples of a key that are less than `gap` apart are a session. With e the last one's
    timestamp plus the gap, all are valid over [e, e + gap). `bounds` are the first one's timestamp
    and e.
    """

    gap: int
    partition_by: tuple[int, ...] = ()
    bounds: Bounds | None = None
    slide: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if self.gap < 1:
            raise ValueError("a session's gap is at least one instant")

    def __str__(self) -> str:
        keys = ", ".join(f"#{k}" for k in self.partition_by)
        return f"[Session {self.gap}{f' Partition By {keys}' if keys else ''}]"


WindowSpec = TimeWindow | RowsWindow | HopWindow | SessionWindow
IntervalWindow = TimeWindow | HopWindow  # a tuple's timestamp alone says when it is in it

NOW = TimeWindow(0)
UNBOUNDED = TimeWindow(None)
