"""OPTIONS (…) of CREATE SINK."""

from __future__ import annotations

import re
from collections.abc import Mapping

from thalweg.engine.sinks.base import SinkError
from thalweg.engine.sources.options import Options

_LENGTH = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", re.IGNORECASE)
_SECONDS = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 0.001),
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1.0),
    **dict.fromkeys(("min", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hour", "hours"), 3600.0),
}


class SinkOptions(Options):
    """Options of one sink, named as it is."""

    error = SinkError

    def __init__(self, target: str, given: Mapping[str, str]) -> None:
        self._stream = target
        self._left = dict(given)
        self._known: list[str] = []

    def length_s(self, name: str, default_s: float) -> float:
        """A length of time, such as `10 seconds`."""
        return self._parsed(name, default_s, _seconds, "a length of time such as '10 seconds'")

    def columns(self, name: str) -> tuple[str, ...]:
        """Names, separated by commas."""
        text = self.text(name)
        return tuple(c.strip() for c in text.split(",") if c.strip()) if text else ()


def _seconds(text: str) -> float:
    found = _LENGTH.fullmatch(text)
    if found is None:
        raise ValueError(text)
    return float(found[1]) * _SECONDS[found[2].lower()]
