"""Windows: when a stream's tuple is in the relation.

Application time is discrete; all lengths here are instants, in units of the stream's RESOLUTION.
An interval is half open, `[start, end)`; FOREVER as an end means that the tuple never leaves.
"""

from __future__ import annotations

from dataclasses import dataclass

FOREVER = (1 << 63) - 1


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

    def interval(self, timestamp: int) -> tuple[int, int]:
        """Where a tuple of this timestamp is valid; empty (start >= end) if it never appears."""
        start = -(-timestamp // self.slide) * self.slide
        if self.length is None:
            return start, FOREVER
        return start, ((timestamp + self.length) // self.slide + 1) * self.slide

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

    def __str__(self) -> str:
        keys = ", ".join(f"#{k}" for k in self.partition_by)
        partition = f"Partition By {keys} " if keys else ""
        slide = f" Slide {self.slide}" if self.slide != 1 else ""
        return f"[{partition}Rows {self.count}{slide}]"


WindowSpec = TimeWindow | RowsWindow

NOW = TimeWindow(0)
UNBOUNDED = TimeWindow(None)
