"""When a reader lacked rows that its stream's home had: fidelity, measured (COSMOS 4.1.1).

A node has a row once a tick of its own has taken it: its queries say it from then on. From the
moment at which the home has a row that is due for a reader until the reader has it, the reader's
value is not the one that it asked for; all other time it is faithful, whatever its tolerance, as
just those rows are due that exceed it. So fidelity is the share of a period in which no row that is
due was on its way.

Clocks are compared as NTP does it: an answer was made in the middle of the time that asking took,
and of several the quickest counts. What is off by that is in the figures. Nothing here is durable.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

MOST_HEADS = 8192
_MOST_STRETCHES = 16384
_SAMPLES = 8

Head = tuple[float, int]  # when, and up to which instant the home has the stream since then


class Clock:
    """What to add to another node's time to have it as one's own."""

    def __init__(self) -> None:
        self._known: deque[tuple[float, float]] = deque(maxlen=_SAMPLES)  # how long it took, offset

    def heard(self, asked_s: float, answered_s: float, there_s: float) -> None:
        took_s = answered_s - asked_s
        self._known.append((took_s, (asked_s + answered_s) / 2 - there_s))

    @property
    def offset_s(self) -> float | None:
        return min(self._known)[1] if self._known else None

    @property
    def error_s(self) -> float:
        return min(self._known)[0] / 2 if self._known else 0.0


class Heads:
    """How far a stream has come at its home, and when; in order of both."""

    def __init__(self) -> None:
        self._times: list[float] = []
        self._reached: list[int] = []

    def add(self, heads: Iterable[Head]) -> None:
        for at, reached in heads:
            if not self._reached or (reached > self._reached[-1] and at >= self._times[-1]):
                self._times.append(at)
                self._reached.append(reached)
        if len(self._times) > MOST_HEADS:
            del self._times[: MOST_HEADS // 2], self._reached[: MOST_HEADS // 2]

    def since(self, at: float) -> list[Head]:
        """Those after a moment."""
        first = bisect_right(self._times, at)
        return list(zip(self._times[first:], self._reached[first:], strict=True))

    def had(self, instant: int) -> float | None:
        """When the home began to have what is at an instant; None: it does not, as far as is
        known. Of what was before the first head, the first."""
        place = bisect_right(self._reached, instant)
        return self._times[place] if place < len(self._times) else None

    @property
    def last(self) -> Head | None:
        return (self._times[-1], self._reached[-1]) if self._times else None


@dataclass(frozen=True, slots=True)
class Period:
    """`fidelity` is None where nothing was measured yet; `delay_s` is that of batches with rows
    that came in it, on average."""

    start_s: float
    end_s: float
    fidelity: float | None
    delay_s: float | None
    batches: int


class Staleness:
    """Of one reader of one stream, in its own time."""

    def __init__(self, began_s: float) -> None:
        self.began_s = began_s
        self._stretches: deque[tuple[float, float]] = deque(maxlen=_MOST_STRETCHES)
        self._delays: deque[tuple[float, float]] = deque(maxlen=_MOST_STRETCHES)

    def came(self, had_s: float, came_s: float) -> None:
        """A batch with rows: since when the home had its first one, and when it was here. What
        was there before the measuring began is left out, and so is what clocks can't tell."""
        start = max(min(had_s, came_s), self.began_s)
        self._delays.append((came_s, max(0.0, came_s - had_s)))
        while self._stretches and self._stretches[-1][1] >= start:
            start = min(start, self._stretches.pop()[0])
        self._stretches.append((start, came_s))

    def periods(
        self, now_s: float, length_s: float, count: int, pending_s: float | None = None
    ) -> list[Period]:
        """The last ones, the latest last. `pending_s`: since then rows are awaited that may be
        due; until they are here, they count as lost."""
        lost = [*self._stretches]
        if pending_s is not None and pending_s < now_s:
            lost.append((max(pending_s, self.began_s), now_s))
        return [
            self._period(now_s - (k + 1) * length_s, now_s - k * length_s, lost)
            for k in reversed(range(count))
        ]

    def _period(self, start: float, end: float, lost: Sequence[tuple[float, float]]) -> Period:
        begins = max(start, self.began_s)
        came = [d for at, d in self._delays if start < at <= end]
        delay = sum(came) / len(came) if came else None
        if end <= begins:
            return Period(start, end, None, None, 0)
        return Period(
            start, end, 1 - _covered(lost, begins, end) / (end - begins), delay, len(came)
        )


def _covered(stretches: Sequence[tuple[float, float]], start: float, end: float) -> float:
    """How much of [start, end) they cover together; they are in order of their ends."""
    found, upto = 0.0, start
    for low, high in sorted(stretches):
        low, high = max(low, upto), min(high, end)
        if low < high:
            found, upto = found + high - low, high
    return found
