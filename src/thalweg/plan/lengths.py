"""Lengths of time as people write them, in CQL's own units."""

from __future__ import annotations

from thalweg.plan.catalog import MICROSECONDS_PER_MILLISECOND, StreamDef

_SECOND_US = 1_000_000
_UNITS = (
    (86_400_000_000, "day"),
    (3_600_000_000, "hour"),
    (60_000_000, "minute"),
    (_SECOND_US, "second"),
    (1_000, "ms"),
    (1, "us"),
)


def length_text(instants: int, stream: StreamDef | None) -> str:
    """So many of the stream's instants, in the largest unit that divides them.

    Integer timestamps may count something else than time. So where no RESOLUTION was set, only
    whole seconds become time, and all else stays the number that it is.
    """
    if stream is None or not instants:
        return str(instants)
    us = instants * stream.resolution_us
    has_default = stream.resolution_us == MICROSECONDS_PER_MILLISECOND
    if stream.timestamp_type.is_integer and has_default and us % _SECOND_US:
        return str(instants)
    return duration_text(us)


def duration_text(us: int) -> str:
    if not us:
        return "0"
    unit_us, unit = next((u, name) for u, name in _UNITS if us % u == 0)
    count = us // unit_us
    return f"{count} {unit}{'s' if count != 1 and len(unit) > 2 else ''}"
