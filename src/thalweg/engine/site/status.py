"""What a site says about its queries and streams."""

from __future__ import annotations

from dataclasses import dataclass

from thalweg.engine.shared.frames import FOREVER
from thalweg.plan.moments import moment_text
from thalweg.plan.windows import BEGINNING


@dataclass(frozen=True, slots=True)
class SinkStatus:
    name: str
    target: str
    error: str | None


@dataclass(frozen=True, slots=True)
class QueryStatus:
    """`started` is the instant from which the result counts; None where it began with its streams.
    `frontier` is how far the result is final. Both are instants of its streams. A member's rows are
    made when somebody reads or listens: where nobody listens, there is no count of them."""

    name: str
    # waiting (no tick yet), filling (its windows began with less than they ask for), running,
    # finished (its streams have ended), parked, lost (what it reads can't be had any more)
    state: str
    kind: str  # relation, or ISTREAM, DSTREAM, RSTREAM
    columns: list[tuple[str, str]]
    streams: list[str]
    flow: str | None  # queries of one flow share time and state
    group: str | None  # that answers it, together with others
    rows: int | None
    cost_s: (
        float  # of the tasks' time since the site started; a member's is its part of its group's
    )
    started: int | None
    horizons: dict[str, int]
    complete_from: str | None  # where its windows began with less; `never` if that remains
    frontier: str | None
    error: str | None
    sinks: list[SinkStatus]
    # How long the last results took since their tuples landed, at whatever node, over the work in
    # them; and the part of that between nodes (COSMOS's PR and CPR).
    delay_ms: float | None
    pr: float | None
    cpr: float | None
    text: str
    version: int  # counts replacements
    resolution_us: int  # of its instants
    is_temporal: bool  # whether they are dates and times, rather than numbers


@dataclass(frozen=True, slots=True)
class StreamStatus:
    name: str
    kind: str  # stream or relation
    columns: list[tuple[str, str]]
    timestamp: str
    source: str | None
    state: str  # waiting, flowing, idle, ended, failing
    arrived: int
    backlog: int  # landed, and not yet in a tick
    late: int
    rejected: int
    watermark: str | None
    error: str | None
    resolution_us: int
    is_temporal: bool


@dataclass(frozen=True, slots=True)
class Health:
    """`ok` while ticks come through. `problems` names all that somebody should look at: what keeps
    ticks back, sources that fail, sinks that were given up, queries that are parked."""

    ok: bool
    tick: int
    backlog: int
    queries: int
    streams: int
    error: str | None
    problems: list[str]


def instant_text(instant: int | None, resolution_us: int, is_temporal: bool) -> str | None:
    """An instant as its stream writes it: a number, or a date and time."""
    if instant is None or instant <= BEGINNING:
        return None
    if instant >= FOREVER:
        return "end"
    if not is_temporal:
        return str(instant)
    return moment_text(instant, resolution_us)


def instant_words(instant: int, resolution_us: int, is_temporal: bool) -> str:
    """The same in a sentence."""
    return instant_text(instant, resolution_us, is_temporal) or "the beginning"


class Instants:
    """A query's or stream's instants as people write them: numbers, or dates and times."""

    def __init__(self, of: QueryStatus | StreamStatus) -> None:
        self._resolution_us, self._is_temporal = of.resolution_us, of.is_temporal

    def text(self, instant: int) -> str:
        return instant_words(instant, self._resolution_us, self._is_temporal)
