"""What can be set about a generator. OPTIONS (…) of CREATE STREAM write it: all values are text."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import TypeVar

from thalweg.plan.types import BIGINT, TIMESTAMP, SqlType


class GeneratorError(ValueError):
    """A generator, stream or option that does not exist or makes no sense."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Common to all generators. Streams drawn with equal settings (but `limit`) are one world.

    `rate` counts the events of the whole world per second of application time. `skew` is the
    exponent of a Zipf distribution; 0 makes all equally likely. `out_of_order` is the share of
    tuples that arrive late, by up to `max_delay` ms: with LATENESS of at least that none is lost.
    """

    seed: int = 0
    rate: float = 1000.0
    skew: float = 1.0
    limit: int | None = None  # tuples of the stream; None never ends
    out_of_order: float = 0.0
    max_delay: int = 0  # ms
    begin: int = 1_735_689_600_000  # ms since the epoch: 2025-01-01 00:00 UTC
    timestamps: SqlType = TIMESTAMP  # or BIGINT: milliseconds since the epoch

    def __post_init__(self) -> None:
        _require(0 < self.rate < math.inf, "rate is events per second, more than 0")
        _require(0 <= self.skew <= 10, "skew is an exponent, 0 to 10")
        _require(self.limit is None or self.limit >= 0, "limit is a number of tuples")
        _require(0 <= self.out_of_order <= 1, "out_of_order is a share, 0 to 1")
        _require(self.max_delay >= 0, "max_delay is milliseconds, 0 or more")
        _require(
            self.out_of_order == 0 or self.max_delay > 0,
            "out_of_order needs max_delay: by how many milliseconds a tuple may be late",
        )


def _require(holds: bool, rule: str) -> None:
    if not holds:
        raise GeneratorError(rule)


def _instant(text: str) -> int:
    """Milliseconds since the epoch, or an ISO date and time in UTC."""
    if text.lstrip("-").isdigit():
        return int(text)
    moment = datetime.fromisoformat(text)
    return round(moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() * 1000)


def _timestamps(text: str) -> SqlType:
    return {"timestamp": TIMESTAMP, "bigint": BIGINT}[text.lower()]


S = TypeVar("S", bound=Settings)

_PARSERS: dict[str, tuple[Callable[[str], object], str]] = {
    "int": (int, "a whole number"),
    "int | None": (int, "a whole number"),
    "float": (float, "a number"),
    "begin": (_instant, "milliseconds since the epoch or an ISO date"),
    "timestamps": (_timestamps, "TIMESTAMP or BIGINT"),
}


def parse_settings(kind: type[S], options: Mapping[str, str]) -> S:
    """Settings from text; an unknown name or a bad value is an error that says what would do."""
    known = {f.name: _PARSERS.get(f.name) or _PARSERS[str(f.type)] for f in fields(kind)}
    values = {}
    for name, text in options.items():
        if name.lower() not in known:
            raise GeneratorError(f"there is no option {name}{suggest(name, known)}")
        parse, expected = known[name.lower()]
        try:
            values[name.lower()] = parse(text)
        except (ValueError, KeyError):
            raise GeneratorError(f"option {name} is {expected}, not {text!r}") from None
    return kind(**values)


def suggest(name: str, known: Mapping[str, object]) -> str:
    """The closest known name, and all of them."""
    by_lower = {k.lower(): k for k in known}
    close = difflib.get_close_matches(name.lower(), list(by_lower), n=1)
    did_you_mean = f"; did you mean {by_lower[close[0]]}?" if close else ""
    return f"{did_you_mean} (there are {', '.join(known)})"
