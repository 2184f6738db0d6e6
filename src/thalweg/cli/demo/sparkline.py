"""A curve in one line of text."""

from __future__ import annotations

from collections.abc import Sequence

_BARS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float], width: int) -> str:
    """The newest values, from 0 to the largest of them; blank where there are none yet."""
    shown = list(values)[-width:]
    top = max(shown, default=0.0)
    if top <= 0:
        return " " * (width - len(shown)) + _BARS[0] * len(shown)
    bars = (_BARS[min(len(_BARS) - 1, int(max(v, 0.0) / top * len(_BARS)))] for v in shown)
    return "".join(bars).rjust(width)
