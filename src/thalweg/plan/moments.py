"""Instants of streams whose timestamps are dates and times, as people write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND_US, _MILLISECOND_US = 1_000_000, 1_000


def moment_text(instant: int, resolution_us: int) -> str:
    """With as many places behind the second as the RESOLUTION has; a number where no calendar has
    such a date."""
    try:
        moment = _EPOCH + timedelta(microseconds=instant * resolution_us)
    except OverflowError:
        return str(instant)
    text = f"{moment:%Y-%m-%d %H:%M:%S}"
    if resolution_us % _SECOND_US == 0:
        return text
    if resolution_us % _MILLISECOND_US == 0:
        return f"{text}.{moment.microsecond // _MILLISECOND_US:03d}"
    return f"{text}.{moment.microsecond:06d}"
