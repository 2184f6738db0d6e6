"""How a core's columns are called when people read about them."""

from __future__ import annotations

from collections import Counter

from thalweg.plan.catalog import Field, StreamDef
from thalweg.plan.nodes import Schema
from thalweg.plan.windows import TimeWindow

_UNITS = {
    86_400_000_000: "d",
    3_600_000_000: "h",
    60_000_000: "min",
    1_000_000: "s",
    1_000: "ms",
    1: "µs",
}


def leaf_names(streams: tuple[StreamDef, ...]) -> tuple[str, ...]:
    """The streams' names; of a stream that is joined with itself, numbered."""
    of_each = Counter(s.name for s in streams)
    seen: Counter[str] = Counter()
    names = []
    for stream in streams:
        seen[stream.name] += 1
        alone = of_each[stream.name] == 1
        names.append(stream.name if alone else f"{stream.name}{seen[stream.name]}")
    return tuple(names)


def named_columns(streams: tuple[StreamDef, ...]) -> Schema:
    """Columns by their names, and their leaf's name where there are several."""
    if len(streams) == 1:
        return streams[0].fields
    return tuple(
        Field(f"{name}.{f.name}", f.type)
        for name, stream in zip(leaf_names(streams), streams, strict=True)
        for f in stream.fields
    )


def duration_text(microseconds: int) -> str:
    """A length of time in the largest unit that divides it."""
    if microseconds == 0:
        return "0"
    return next(
        f"{microseconds // us} {unit}" for us, unit in _UNITS.items() if microseconds % us == 0
    )


def instants_text(instants: int, stream: StreamDef) -> str:
    """A number of instants as the stream's author counts them: as numbers, or as time."""
    if stream.timestamp_type.is_integer:
        return str(instants)
    return duration_text(instants * stream.resolution_us)


def window_text(window: TimeWindow, stream: StreamDef) -> str:
    slide = f" Slide {instants_text(window.slide, stream)}" if window.slide != 1 else ""
    if window.length is None:
        return f"[Unbounded{slide}]"
    length = f"Range {instants_text(window.length, stream)}" if window.length else "Now"
    return f"[{length}{slide}]"
