"""Windows as people write them: lengths of time in units, counts as they are."""

from __future__ import annotations

from thalweg.plan.catalog import StreamDef
from thalweg.plan.nodes import Schema
from thalweg.plan.text import column_text, window_text
from thalweg.plan.windows import HopWindow, RowsWindow, SessionWindow, WindowSpec

_UNITS = (
    (86_400_000_000, "day"),
    (3_600_000_000, "hour"),
    (60_000_000, "minute"),
    (1_000_000, "second"),
    (1_000, "ms"),
    (1, "µs"),
)


def window_words(window: WindowSpec, stream: StreamDef | None, schema: Schema = ()) -> str:
    if isinstance(window, RowsWindow):
        return window_text(window, schema)
    if stream is None or stream.timestamp_type.is_integer:
        return window_text(window, schema)
    if isinstance(window, HopWindow):
        length = length_words(window.length, stream)
        if window.slide == window.length:
            return f"[Tumble {length}]"
        return f"[Hop {length} Every {length_words(window.slide, stream)}]"
    if isinstance(window, SessionWindow):
        keys = ", ".join(column_text(k, schema) for k in window.partition_by)
        by = f" Partition By {keys}" if keys else ""
        return f"[Session {length_words(window.gap, stream)}{by}]"
    slide = f" Slide {length_words(window.slide, stream)}" if window.slide != 1 else ""
    if window.length is None:
        return f"[Unbounded{slide}]"
    if window.length == 0:
        return f"[Now{slide}]"
    return f"[Range {length_words(window.length, stream)}{slide}]"


def length_words(instants: int, stream: StreamDef) -> str:
    if stream.timestamp_type.is_integer:
        return str(instants)
    us = instants * stream.resolution_us
    unit, name = next((u, n) for u, n in _UNITS if us % u == 0)
    return f"{us // unit} {name}"
